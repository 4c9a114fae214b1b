from uuid import uuid4

from keyhold import call, reason, refusal, verify
from keyhold_rest.api.api_keys_service import api_keys_service_revoke_imported_api_key as revoke
from keyhold_rest.api.imported_api_keys_service import (
    imported_api_keys_service_batch_create_imported_api_keys as batch_create,
)
from keyhold_rest.api.imported_api_keys_service import imported_api_keys_service_create_imported_api_key as create
from keyhold_rest.api.imported_api_keys_service import imported_api_keys_service_delete_imported_api_key as delete
from keyhold_rest.api.imported_api_keys_service import imported_api_keys_service_get_imported_api_key as get
from keyhold_rest.api.imported_api_keys_service import imported_api_keys_service_list_imported_api_keys as list_keys
from keyhold_rest.api.imported_api_keys_service import imported_api_keys_service_update_imported_api_key as update
from keyhold_rest.api.self_service_service import self_service_service_self_revoke_api_key as self_revoke
from keyhold_rest.models import (
    BatchCreateImportedApiKeysError,
    BatchCreateImportedApiKeysRequest,
    CreateImportedApiKeyRequest,
    RevocationReason,
    RevokeImportedApiKeyBody,
    SelfRevokeApiKeyRequest,
    UpdateImportedApiKeyBody,
)


def imported_keys(client, ok):
    actor = f"python-{uuid4()}"
    first, second = f"legacy-1-{actor}", f"legacy-2-{actor}"

    def request(raw_key):
        return CreateImportedApiKeyRequest(raw_key=raw_key, name="python", actor_id=actor, scopes=["read"])

    created = call(create, client, body=request(first))
    ok("import", created.status == "KEY_STATUS_ACTIVE" and verify(client, first).is_valid, created)
    got = call(get, client, created.key_id)
    ok("get", got.key_id == created.key_id and got.scopes == ["read"], got)

    batch = BatchCreateImportedApiKeysRequest(requests=[request(second), request(first)])
    results = call(batch_create, client, body=batch)
    exists = BatchCreateImportedApiKeysError.BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS
    counts = (results.success_count, results.failure_count)
    ok("a batch imports what it can", counts == (1, 1) and results.results[1].error_code == exists, results)
    other = results.results[0].imported_api_key.key_id

    page = call(list_keys, client, filter_=f'actor_id="{actor}"')
    ok("list", len(page.imported_api_keys) == 2, page)
    renamed = call(update, client, other, update_mask="name", body=UpdateImportedApiKeyBody(name="renamed"))
    ok("an update of the name keeps the scopes", (renamed.name, renamed.scopes) == ("renamed", ["read"]), renamed)

    itself = SelfRevokeApiKeyRequest(credential=first, reason=RevocationReason.REVOCATION_REASON_SUPERSEDED)
    revoked = call(self_revoke, client, body=itself)
    ok("a key revokes itself", revoked.key_id == created.key_id, revoked)
    reason_left = RevocationReason.REVOCATION_REASON_AFFILIATION_CHANGED
    call(revoke, client, other, body=RevokeImportedApiKeyBody(reason=reason_left, revocation_description="left"))
    revoked = call(get, client, other)
    recorded = (revoked.revocation_reason, revoked.revocation_description)
    ok("revoke with reason and description", recorded == (reason_left, "left"), revoked)

    call(delete, client, other)
    gone = refusal(lambda: call(get, client, other))
    ok("delete", gone.code == 404 and reason(gone) == "API_KEY_NOT_FOUND", gone)
