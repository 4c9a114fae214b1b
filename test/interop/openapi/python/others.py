"""Errors, what needs no credential, and the responses of later releases."""

from uuid import uuid4

from keyhold import call, connect, reason, refusal
from keyhold_rest.api.derived_keys_service import derived_keys_service_get_jwks as get_jwks
from keyhold_rest.api.health import health_alive, health_ready
from keyhold_rest.api.imported_api_keys_service import (
    imported_api_keys_service_batch_create_imported_api_keys as batch_create,
)
from keyhold_rest.api.imported_api_keys_service import imported_api_keys_service_create_imported_api_key as import_key
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_create_issued_api_key as create
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_list_issued_api_keys as list_keys
from keyhold_rest.models import (
    BatchCreateImportedApiKeysRequest,
    CreateImportedApiKeyRequest,
    CreateIssuedApiKeyRequest,
    ErrorResponse,
    FieldViolationReason,
    VerifyApiKeyResponse,
)


def errors(client, ok):
    invalid = refusal(lambda: call(create, client, body=CreateIssuedApiKeyRequest(name="python", actor_id="")))
    fields = [(one.field, one.reason) for detail in invalid.details for one in detail.field_violations or []]
    wanted = [("actor_id", FieldViolationReason.FIELD_REQUIRED)]
    ok("an invalid field is named", reason(invalid) == "INVALID_ARGUMENT" and fields == wanted, invalid)

    known = CreateImportedApiKeyRequest(raw_key=f"legacy-3-{uuid4()}", name="python", actor_id="python")
    call(import_key, client, body=known)
    none = refusal(lambda: call(batch_create, client, body=BatchCreateImportedApiKeysRequest(requests=[known])))
    codes = [one.error_code for detail in none.details for one in detail.results or []]
    told = codes == ["BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS"]
    ok("a batch without a success has its results in the error", none.code == 409 and told, none)

    rejected = refusal(lambda: call(list_keys, connect("unknown")))
    unknown = rejected.code == 401 and reason(rejected) == "CALLER_UNAUTHENTICATED"
    ok("without a valid token", unknown, rejected)


def health_and_keys(client, ok):
    alive = call(health_alive, client)
    ok("alive", alive.status == "ok", alive)
    ready = call(health_ready, client)
    ok("ready", ready.status == "ok" and ready.checks["database"] == "ok", ready)
    jwks = call(get_jwks, client)
    ok("public keys", jwks.keys and all(key.kid for key in jwks.keys), jwks)


def later_releases(_client, ok):
    verdict = VerifyApiKeyResponse.from_dict(
        {
            "is_valid": False,
            "scopes": [],
            "metadata": {},
            "missing_scopes": [],
            "limits": [],
            "error_code": "VERIFICATION_ERROR_LATER",
            "status": "KEY_STATUS_LATER",
            "credential_type": "CREDENTIAL_TYPE_LATER",
            "later": {"field": 1},
        }
    )
    ok("unknown values and fields of a response are accepted", verdict.error_code.endswith("_LATER"), verdict)
    details = [
        {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "LATER", "domain": "keyhold", "metadata": {}},
    ]
    body = {"error": {"code": 400, "message": "", "status": "LATER", "later": 1, "details": details}}
    error = ErrorResponse.from_dict(body).error
    ok("and of an error", reason(error) == "LATER", error)
