"""The generated client, with the URL and the token of a server."""

import os

from keyhold_rest import AuthenticatedClient
from keyhold_rest.api.api_keys_service import api_keys_service_batch_verify_api_keys as batch_verify_api_keys
from keyhold_rest.api.api_keys_service import api_keys_service_verify_api_key as verify_api_key
from keyhold_rest.models import BatchVerifyApiKeysRequest, ErrorResponse, VerifyApiKeyRequest


class Refused(Exception):
    """A call that the server refused, with the typed error."""

    def __init__(self, error):
        super().__init__(str(error))
        self.error = error


def connect(token=os.environ["KEYHOLD_TOKEN"]):
    return AuthenticatedClient(base_url=os.environ["KEYHOLD_URL"], token=token, raise_on_unexpected_status=True)


def call(operation, client, *path, **arguments):
    """Returns the typed response of an operation. Raises `Refused` with the typed error."""
    response = operation.sync_detailed(*path, client=client, **arguments)
    if isinstance(response.parsed, ErrorResponse):
        assert response.parsed.error.code == response.status_code
        raise Refused(response.parsed.error)
    return response.parsed


def refusal(body):
    try:
        found = body()
    except Refused as refused:
        return refused.error
    raise AssertionError(f"no refusal: {found}")


def reason(error):
    return next(detail.reason for detail in error.details if detail.reason)


def verify(client, credential):
    return call(verify_api_key, client, body=VerifyApiKeyRequest(credential=credential))


def verdicts(client, *credentials):
    """Returns the verdicts on all of them, from one batch."""
    body = BatchVerifyApiKeysRequest(requests=[VerifyApiKeyRequest(credential=one) for one in credentials])
    results = call(batch_verify_api_keys, client, body=body).results
    return ["valid" if one.is_valid else one.error_code for one in results]
