from grpc_health.v1 import health_pb2

from keyhold.v2alpha1 import api_key_pb2, imported_api_keys_pb2, self_service_pb2
from keys import new_raw_key, verdicts, verify


def imported_keys(keyhold, ok):
    health = keyhold.health.Check(health_pb2.HealthCheckRequest())
    ok("the server reports that it is healthy", health.status == health_pb2.HealthCheckResponse.SERVING, health)

    raw_key = new_raw_key()
    one = {"raw_key": raw_key, "name": "python", "actor_id": "python", "scopes": ["read"]}
    imported = keyhold.imported.CreateImportedApiKey(imported_api_keys_pb2.CreateImportedApiKeyRequest(**one))
    ok("import", imported.status == api_key_pb2.KEY_STATUS_ACTIVE, imported)
    verdict = verify(keyhold, raw_key)
    ok("verify the raw key", verdict.is_valid and verdict.key_id == imported.key_id, verdict)

    other = one | {"raw_key": new_raw_key()}
    request = imported_api_keys_pb2.BatchCreateImportedApiKeysRequest(requests=[other, one])
    batch = keyhold.imported.BatchCreateImportedApiKeys(request)
    ok("a batch imports what it can", (batch.success_count, batch.failure_count) == (1, 1), batch)
    exists = imported_api_keys_pb2.BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS
    ok("and reports the failed item", batch.results[1].error_code == exists, batch)

    itself = self_service_pb2.SelfRevokeApiKeyRequest(credential=raw_key, reason="REVOCATION_REASON_SUPERSEDED")
    revoked = keyhold.own.SelfRevokeApiKey(itself)
    ok("a key revokes itself without a caller's credential", revoked.key_id == imported.key_id, revoked)
    results = verdicts(keyhold, raw_key, other["raw_key"], "never imported")
    ok("a batch has a verdict on each", results == ["REVOKED", "valid", "NOT_FOUND"], results)

    deleted = batch.results[0].imported_api_key.key_id
    keyhold.imported.DeleteImportedApiKey(imported_api_keys_pb2.DeleteImportedApiKeyRequest(key_id=deleted))
    ok("delete", verdicts(keyhold, other["raw_key"]) == ["NOT_FOUND"])
