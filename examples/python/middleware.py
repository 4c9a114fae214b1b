"""Authentication and authorization by Keyhold for FastAPI."""

import logging

from fastapi import HTTPException, Request
import grpc

from connect import connect, options
from keyhold.v2alpha1.api_keys_pb2 import VERIFICATION_ERROR_INTERNAL, VerifyApiKeyRequest, VerifyApiKeyResponse
from keyhold.v2alpha1.api_keys_pb2_grpc import ApiKeysServiceStub

keys = ApiKeysServiceStub(connect())
log = logging.getLogger(__name__)


def require_scope(scope: str):
    """Returns a dependency that rejects requests without a valid credential with this scope (RFC 6750). It calls Keyhold for each request,
    so a revocation takes effect at once. FastAPI runs it in a thread, as it is not async."""

    def caller(request: Request) -> VerifyApiKeyResponse:
        verdict = verify(credential_of(request))
        if not verdict.is_valid:
            raise rejection(401, 'Bearer error="invalid_token"')
        if scope not in verdict.scopes:
            raise rejection(403, f'Bearer error="insufficient_scope", scope="{scope}"')
        return verdict

    return caller


def verify(credential: str) -> VerifyApiKeyResponse:
    try:
        verdict = keys.VerifyApiKey(VerifyApiKeyRequest(credential=credential), **options)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:  # longer than any credential
            return VerifyApiKeyResponse(is_valid=False)
        log.error("no verdict: %s", error.code())
        raise rejection(503, "Bearer") from error
    if verdict.error_code == VERIFICATION_ERROR_INTERNAL:
        log.error("no verdict: %s", verdict.error_message)
        raise rejection(503, "Bearer")
    return verdict


def credential_of(request: Request) -> str:
    """Returns the credential in Authorization or X-API-Key."""
    pairs = [value.partition(" ") for value in request.headers.getlist("authorization")]
    bearer = [rest.strip() for scheme, _, rest in pairs if scheme.lower() == "bearer"]
    credentials = [one for one in bearer + request.headers.getlist("x-api-key") if one]
    if len(credentials) > 1:
        raise rejection(400, 'Bearer error="invalid_request"')
    if not credentials:
        raise rejection(401, "Bearer")
    return credentials[0]


def rejection(status: int, challenge: str) -> HTTPException:
    return HTTPException(status, headers={"WWW-Authenticate": challenge})
