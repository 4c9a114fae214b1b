import grpc

from error_details import details_of, refusal
from keyhold.v2alpha1 import api_key_pb2, api_keys_pb2, issued_api_keys_pb2
from keys import JWT, MACAROON, derive, issue, verdict_on, verdicts, verify


def life_of_a_key(keyhold, ok):
    issued = issue(keyhold)
    key_id, actor_id, secret = issued.issued_api_key.key_id, issued.issued_api_key.actor_id, issued.secret
    ok("issue", secret and issued.issued_api_key.status == api_key_pb2.KEY_STATUS_ACTIVE, issued.issued_api_key)

    got = keyhold.issued.GetIssuedApiKey(issued_api_keys_pb2.GetIssuedApiKeyRequest(key_id=key_id))
    ok("get", got.actor_id == actor_id and got.metadata["env"] == "prod" and got.create_time.seconds > 0, got)

    query = f'actor_id="{actor_id}" AND status=KEY_STATUS_ACTIVE'
    page = keyhold.issued.ListIssuedApiKeys(
        issued_api_keys_pb2.ListIssuedApiKeysRequest(page_size=10, filter=query)
    )
    ok("list with a filter", [key.key_id for key in page.issued_api_keys] == [key_id], page)

    change = issued_api_keys_pb2.UpdateIssuedApiKeyRequest(
        issued_api_key={"key_id": key_id, "name": "renamed"}, update_mask={"paths": ["name"]}
    )
    updated = keyhold.issued.UpdateIssuedApiKey(change)
    ok("update", updated.name == "renamed" and len(updated.scopes) == 2, updated)

    verdict = verify(keyhold, secret)
    ok("verify", verdict.is_valid and (verdict.key_id, verdict.actor_id) == (key_id, actor_id), verdict)
    ok("verify: scopes", list(verdict.scopes) == ["read", "deploy"], verdict)

    jwt, macaroon = derive(keyhold, secret, JWT), derive(keyhold, secret, MACAROON)
    ok("derive a JWT", verify(keyhold, jwt).credential_type == api_keys_pb2.CREDENTIAL_TYPE_JWT)
    ok("derive a macaroon", verify(keyhold, macaroon).credential_type == api_keys_pb2.CREDENTIAL_TYPE_MACAROON)

    rotation = issued_api_keys_pb2.RotateIssuedApiKeyRequest(key_id=key_id, grace_period="1h")
    rotated = keyhold.issued.RotateIssuedApiKey(rotation)
    ok("rotate", rotated.secret != secret and rotated.issued_api_key.key_id == key_id)
    everything = [secret, rotated.secret, jwt, macaroon]
    results = verdicts(keyhold, *everything)
    ok("both secrets and both tokens verify in the grace period, in one batch", results == ["valid"] * 4, results)

    request = api_keys_pb2.RevokeApiKeyRequest(key_id=key_id, reason="REVOCATION_REASON_KEY_COMPROMISE")
    revoked = keyhold.keys.RevokeApiKey(request)
    ok("revoke", revoked.status == api_key_pb2.KEY_STATUS_REVOKED and revoked.revoke_time.seconds > 0, revoked)
    results = verdicts(keyhold, *everything)
    ok("both secrets and both tokens are revoked at once", results == ["REVOKED"] * 4, results)
    alone = [verdict_on(verify(keyhold, credential)) for credential in everything]
    ok("single verdicts are the same", alone == ["REVOKED"] * 4, alone)
    again = details_of(refusal(lambda: keyhold.keys.RevokeApiKey(request)))
    wanted = (grpc.StatusCode.FAILED_PRECONDITION, "API_KEY_ALREADY_REVOKED")
    ok("a revoked key cannot be revoked again", again[:2] == wanted, again)
