import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from keyhold.v2alpha1 import api_keys_pb2, issued_api_keys_pb2

UNKNOWN = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"


def refusal(call):
    """The error of a call that must fail."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call succeeded")


def details_of(error):
    """The code, the reason and metadata of the ErrorInfo, and the fields that a BadRequest names."""
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
    said = details_of(refusal(lambda: keyhold.issued.GetIssuedApiKey(unknown)))
    ok("an unknown key: ErrorInfo", said[:2] == (grpc.StatusCode.NOT_FOUND, "API_KEY_NOT_FOUND"), said)
    ok("an unknown key: its metadata", said[2] == {"key_id": UNKNOWN}, said)

    bad = issued_api_keys_pb2.CreateIssuedApiKeyRequest(name="python")
    said = details_of(refusal(lambda: keyhold.issued.CreateIssuedApiKey(bad)))
    ok("bad input: ErrorInfo", said[:2] == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"), said)
    ok("bad input: BadRequest names the field", said[3] == ["actor_id"], said)

    request = api_keys_pb2.VerifyApiKeyRequest(credential="x")
    said = details_of(refusal(lambda: keyhold.stranger.VerifyApiKey(request)))
    ok("without a token", said[:2] == (grpc.StatusCode.UNAUTHENTICATED, "CALLER_UNAUTHENTICATED"), said)
