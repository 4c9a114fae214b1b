import os
from types import SimpleNamespace

from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc6749 import ResourceProtector
from authlib.oauth2.rfc6750.errors import InsufficientScopeError, InvalidTokenError
from authlib.oauth2.rfc7662 import IntrospectTokenValidator
from keyhold.v2alpha1 import api_keys_pb2

from connect import CA_FILE, URL
from keys import JWT, MACAROON, derive, issue


class Validator(IntrospectTokenValidator):
    def introspect_token(self, token_string):
        with OAuth2Session("my-service", os.environ["KEYHOLD_TOKEN"]) as session:
            answer = session.introspect_token(f"{URL}/v2alpha1/introspect", token=token_string, verify=CA_FILE or True)
        answer.raise_for_status()
        return answer.json()


def introspect(token, secret, method="client_secret_basic", headers=None):
    with OAuth2Session("python", secret, token_endpoint_auth_method=method) as session:
        options = {"token": token, "headers": headers, "verify": CA_FILE or True}
        return session.introspect_token(f"{URL}/v2alpha1/introspect", **options)


def introspection(keyhold, ok):
    """Protects a resource with Authlib, which introspects each token (RFC 7662)."""
    protector = ResourceProtector()
    protector.register_token_validator(Validator())

    def outcome(token, *scopes):
        request = SimpleNamespace(headers={"Authorization": f"Bearer {token}"})
        try:
            return protector.validate_request([" ".join(scopes)] if scopes else None, request)
        except (InsufficientScopeError, InvalidTokenError) as error:
            return error.error

    issued = issue(keyhold)
    key = issued.issued_api_key
    tokens = [issued.secret, derive(keyhold, issued.secret, JWT), derive(keyhold, issued.secret, MACAROON)]
    for kind, token in zip(["secret", "JWT", "macaroon"], tokens):
        found = outcome(token, "read", "deploy")
        expected = {"active": True, "client_id": key.key_id, "sub": key.actor_id, "scope": "read deploy"}
        ok(f"a {kind} is accepted with its scopes", expected.items() <= found.items(), found)
        ok(f"a {kind} without a required scope is refused", outcome(token, "write") == "insufficient_scope")
    ok("an unknown token is refused", outcome("unknown") == "invalid_token")
    keyhold.keys.RevokeApiKey(api_keys_pb2.RevokeApiKeyRequest(key_id=key.key_id))
    found = [outcome(token) for token in tokens]
    ok("after the revocation of the key all are refused", found == ["invalid_token"] * 3, found)
    admin = os.environ["KEYHOLD_TOKEN"]
    ok("nothing more is said of them", introspect(tokens[0], admin).json() == {"active": False})
    found = introspect(tokens[0], None, "none", {"Authorization": f"Bearer {admin}"})
    ok("a bearer token authenticates the caller too", found.json() == {"active": False}, found.text)
    refused = [introspect("a", tokens[0]), introspect("a", admin, "client_secret_post")]
    found = [(answer.status_code, answer.json()["error"]) for answer in refused]
    ok("neither another secret nor one in the body authenticates", found == [(401, "invalid_client")] * 2, found)
