import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from keyhold.v2alpha1 import api_keys_pb2, imported_api_keys_pb2, issued_api_keys_pb2

UNKNOWN = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"


def refusal(call):
    """Returns the error of a call that must fail."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call succeeded")


def details_of(error):
    """Returns the code, the reason and metadata of the ErrorInfo, and the fields of the BadRequest."""
    reason, metadata, fields = "", {}, []
    for detail in rpc_status.from_call(error).details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            assert info.domain == "keyhold"
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(bad):
            fields = [violation.field for violation in bad.field_violations]
    return error.code(), reason, metadata, fields


def error_details(keyhold, ok):
    unknown = issued_api_keys_pb2.GetIssuedApiKeyRequest(key_id=UNKNOWN)
    details = details_of(refusal(lambda: keyhold.issued.GetIssuedApiKey(unknown)))
    ok("an unknown key: ErrorInfo", details[:2] == (grpc.StatusCode.NOT_FOUND, "API_KEY_NOT_FOUND"), details)
    ok("an unknown key: its metadata", details[2] == {"key_id": UNKNOWN}, details)

    bad = issued_api_keys_pb2.CreateIssuedApiKeyRequest(name="python")
    details = details_of(refusal(lambda: keyhold.issued.CreateIssuedApiKey(bad)))
    ok("bad input: ErrorInfo", details[:2] == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"), details)
    ok("bad input: BadRequest names the field", details[3] == ["actor_id"], details)

    item = imported_api_keys_pb2.CreateImportedApiKeyRequest()
    batch = imported_api_keys_pb2.BatchCreateImportedApiKeysRequest(requests=[item] * 1000)
    details = details_of(refusal(lambda: keyhold.imported.BatchCreateImportedApiKeys(batch)))
    ok("1,000 failed items: ErrorInfo", details[:2] == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"), details)

    request = api_keys_pb2.VerifyApiKeyRequest(credential="x")
    details = details_of(refusal(lambda: keyhold.unauthenticated.VerifyApiKey(request)))
    ok("without a token", details[:2] == (grpc.StatusCode.UNAUTHENTICATED, "CALLER_UNAUTHENTICATED"), details)
