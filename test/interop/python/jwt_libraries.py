import json
import os
import urllib.request

import authlib.jose
import jose.exceptions
import jose.jwt
import joserfc.errors
import joserfc.jwk
import joserfc.jwt

from connect import URL, tls_context
from jwt_offline import tampered
from keys import JWT, derive, issue

ALGORITHM = os.environ["KEYHOLD_SIGNING_ALGORITHM"]


def with_joserfc(token, jwks, issuer):
    keys = joserfc.jwk.KeySet.import_key_set(jwks)
    decoded = joserfc.jwt.decode(token, keys, algorithms=[ALGORITHM])
    joserfc.jwt.JWTClaimsRegistry(iss={"essential": True, "value": issuer}, exp={"essential": True}).validate(
        decoded.claims
    )
    return decoded.claims


def with_authlib(token, jwks, issuer):
    keys = authlib.jose.JsonWebKey.import_key_set(jwks)
    options = {"iss": {"essential": True, "value": issuer}, "exp": {"essential": True}}
    claims = authlib.jose.JsonWebToken([ALGORITHM]).decode(token, keys, claims_options=options)
    claims.validate()
    return claims


def with_python_jose(token, jwks, issuer):
    return jose.jwt.decode(token, jwks, algorithms=[ALGORITHM], issuer=issuer)


LIBRARIES = {
    "joserfc": (with_joserfc, joserfc.errors.JoseError, {"EdDSA", "ES256"}),
    "Authlib": (with_authlib, authlib.jose.JoseError, {"EdDSA", "ES256"}),
    "python-jose": (with_python_jose, jose.exceptions.JOSEError, {"ES256"}),
}


def jwt_libraries(keyhold, ok):
    """Verifies derived JWTs with the published keys only. The table in docs/clients.md has the same libraries and algorithms."""
    issued = issue(keyhold)
    token = derive(keyhold, issued.secret, JWT)
    with urllib.request.urlopen(f"{URL}/v2alpha1/derivedKeys/jwks.json", context=tls_context()) as answer:
        jwks = json.load(answer)

    for name, (verify, error, algorithms) in LIBRARIES.items():

        def is_refused(token, issuer="keyhold"):
            try:
                verify(token, jwks, issuer)
            except error:
                return True
            return False

        if ALGORITHM not in algorithms:
            ok(f"{name} does not know {ALGORITHM}", is_refused(token))
            continue
        claims = verify(token, jwks, "keyhold")
        found = (claims["key_id"], claims["scope"])
        ok(f"{name}: signature, times and claims are valid", found == (issued.issued_api_key.key_id, "read deploy"), claims)
        ok(f"{name}: a tampered JWT is rejected", is_refused(tampered(token)))
        ok(f"{name}: another issuer is rejected", is_refused(token, issuer="another"))
