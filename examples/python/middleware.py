"""Authentication and authorization by Keyhold for FastAPI."""

import logging
import re

from fastapi import HTTPException, Request
import grpc

from connect import connect, options
from keyhold.v2alpha1.api_keys_pb2 import VERIFICATION_ERROR_INTERNAL, VerifyApiKeyRequest, VerifyApiKeyResponse
from keyhold.v2alpha1.api_keys_pb2_grpc import ApiKeysServiceStub

keys = ApiKeysServiceStub(connect())
log = logging.getLogger(__name__)

CREDENTIAL = re.compile(r"[!-+\--~]+")  # visible ASCII without the comma, which joins two values of a header


def require_scope(scope: str):
    """Returns a dependency that rejects requests without a valid credential with this scope (RFC 6750). It calls Keyhold for each request,
    so a revocation takes effect at once. FastAPI runs it in a thread, as it is not async."""

    def caller(request: Request) -> VerifyApiKeyResponse:
        verdict = verify(credential_of(request), request.client.host if request.client else "")
        if not verdict.is_valid:
            raise rejection(401, 'Bearer error="invalid_token"')
        if scope not in verdict.scopes:
            raise rejection(403, f'Bearer error="insufficient_scope", scope="{scope}"')
        return verdict

    return caller


def verify(credential: str, client_ip: str) -> VerifyApiKeyResponse:
    """Returns the verdict. Behind a proxy, start uvicorn with --forwarded-allow-ips: client_ip is then that of its client."""
    try:
        verdict = keys.VerifyApiKey(VerifyApiKeyRequest(credential=credential, client_ip=client_ip), **options)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:  # longer than any credential
            return VerifyApiKeyResponse(is_valid=False)
        log.error("no verdict: %s", error.code())
        raise unavailable() from error
    if verdict.error_code == VERIFICATION_ERROR_INTERNAL:
        log.error("no verdict: %s", verdict.error_message)
        raise unavailable()
    return verdict


def credential_of(request: Request) -> str:
    """Returns the credential in Authorization or X-API-Key."""
    authorizations, api_keys = (request.headers.getlist(name) for name in ("authorization", "x-api-key"))
    scheme, _, bearer = "".join(authorizations).partition(" ")
    credentials = {bearer.strip()} if scheme.lower() == "bearer" else set()
    credentials.update(filter(None, api_keys))
    if not credentials:
        raise rejection(401, "Bearer")
    if max(len(authorizations), len(api_keys), len(credentials)) > 1 or not CREDENTIAL.fullmatch(min(credentials)):
        raise rejection(400, 'Bearer error="invalid_request"')
    return credentials.pop()


def unavailable() -> HTTPException:
    return HTTPException(503, headers={"Retry-After": "1"})


def rejection(status: int, challenge: str) -> HTTPException:
    return HTTPException(status, headers={"WWW-Authenticate": challenge})
