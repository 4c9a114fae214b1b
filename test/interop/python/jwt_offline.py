import os
import subprocess

import jwt

from connect import URL, tls_context
from keyhold.v2alpha1 import derived_keys_pb2
from keys import JWT, derive, issue

ALGORITHM = os.environ["KEYHOLD_SIGNING_ALGORITHM"]


def jwt_offline(keyhold, ok):
    """Verifies derived JWTs with the published keys only, with PyJWT."""
    issued = issue(keyhold)
    first = derive(keyhold, issued.secret, JWT)
    # By default PyJWKClient waits 30 s before it reads the keys again for an unknown kid.
    keys = jwt.PyJWKClient(
        f"{URL}/v2alpha1/derivedKeys/jwks.json", ssl_context=tls_context(), cooldown_duration=0
    )

    def decode(token, issuer="keyhold", audience=None):
        key = keys.get_signing_key_from_jwt(token)
        required = {"require": ["exp", "iat", "jti"]}
        return jwt.decode(token, key, algorithms=[ALGORITHM], issuer=issuer, audience=audience, options=required)

    def is_refused(token, **options):
        try:
            decode(token, **options)
        except jwt.InvalidTokenError:
            return True
        return False

    claims = decode(first)
    ok("signature, times and issuer are valid", claims["iss"] == "keyhold", claims)
    record = issued.issued_api_key
    found = (claims["sub"], claims["key_id"], claims["scope"])
    ok("its claims", found == (record.actor_id, record.key_id, "read deploy"), claims)
    ok("a tampered JWT is rejected", is_refused(tampered(first)))
    ok("another issuer is rejected", is_refused(first, issuer="another"))

    restricted = derive(keyhold, issued.secret, JWT, ["orders", "billing"])
    claims = decode(restricted, audience="billing")
    ok("a JWT for this audience is accepted", claims["aud"] == ["orders", "billing"], claims)
    ok("a JWT for another audience is rejected", is_refused(restricted, audience="stock"))
    ok("a JWT with an audience is rejected where none is expected", is_refused(restricted))
    ok("a JWT without an audience is rejected where one is expected", is_refused(first, audience="billing"))

    subprocess.run([os.environ["KEYHOLD_ROTATE_SIGNING_KEY"]], check=True, capture_output=True)
    second = derive(keyhold, issued.secret, JWT)
    is_of_another_key = jwt.get_unverified_header(first)["kid"] != jwt.get_unverified_header(second)["kid"]
    ok("after a rotation of the signing key, a new JWT has another key", is_of_another_key)
    ok("PyJWKClient reads the keys again, and a new JWT verifies", decode(second)["key_id"] == record.key_id)
    ok("an older JWT still verifies", decode(first)["key_id"] == record.key_id)
    published = keyhold.jwks.GetJwks(derived_keys_pb2.GetJwksRequest()).keys
    ok("the set is the same over gRPC", len(published) >= 2 and published[0].alg == ALGORITHM, published)


def tampered(token):
    """Changes one character of the signature."""
    at = len(token) - 40
    return token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
