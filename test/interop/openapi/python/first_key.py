"""The lines of docs/clients.md."""

from keyhold_rest import AuthenticatedClient
from keyhold_rest.api.api_keys_service import api_keys_service_verify_api_key as verify
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_create_issued_api_key as create
from keyhold_rest.models import CreateIssuedApiKeyRequest, VerifyApiKeyRequest


def first_key(url, token, ok):
    client = AuthenticatedClient(base_url=url, token=token)
    request = CreateIssuedApiKeyRequest(name="deploy bot", actor_id="team_42", scopes=["read"])
    issued = create.sync(client=client, body=request)
    verdict = verify.sync(client=client, body=VerifyApiKeyRequest(credential=issued.secret))
    ok("the secret is valid", verdict.is_valid, verdict)
