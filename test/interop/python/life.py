import grpc

from error_details import details_of, refusal
from keyhold.v2alpha1 import api_key_pb2, api_keys_pb2, issued_api_keys_pb2
from keys import JWT, MACAROON, derive, issue, verdicts, verify


def life_of_a_key(keyhold, ok):
    """Calls with each kind of field; the client in Go makes all calls."""
    issued = issue(keyhold)
    key, secret = issued.issued_api_key, issued.secret
    ok("issue", secret and key.status == api_key_pb2.KEY_STATUS_ACTIVE and key.create_time.seconds > 0, key)

    change = issued_api_keys_pb2.UpdateIssuedApiKeyRequest(
        issued_api_key={"key_id": key.key_id, "name": "renamed"}, update_mask={"paths": ["name"]}
    )
    updated = keyhold.issued.UpdateIssuedApiKey(change)
    ok("update", updated.name == "renamed" and updated.metadata["env"] == "prod", updated)

    verdict = verify(keyhold, secret)
    ok("verify", verdict.is_valid and list(verdict.scopes) == ["read", "deploy"], verdict)
    everything = [secret, derive(keyhold, secret, JWT), derive(keyhold, secret, MACAROON)]
    results = verdicts(keyhold, *everything)
    ok("the secret and both tokens verify, in one batch", results == ["valid"] * 3, results)

    request = api_keys_pb2.RevokeApiKeyRequest(key_id=key.key_id, reason="REVOCATION_REASON_KEY_COMPROMISE")
    revoked = keyhold.keys.RevokeApiKey(request)
    ok("revoke", revoked.status == api_key_pb2.KEY_STATUS_REVOKED and revoked.revoke_time.seconds > 0, revoked)
    results = verdicts(keyhold, *everything)
    ok("all are revoked at once", results == ["REVOKED"] * 3, results)
    again = details_of(refusal(lambda: keyhold.keys.RevokeApiKey(request)))
    wanted = (grpc.StatusCode.FAILED_PRECONDITION, "API_KEY_ALREADY_REVOKED")
    ok("a revoked key cannot be revoked again", again[:2] == wanted, again)
