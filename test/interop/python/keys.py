import secrets

from keyhold.v2alpha1 import api_keys_pb2, issued_api_keys_pb2

JWT = api_keys_pb2.TOKEN_ALGORITHM_JWT
MACAROON = api_keys_pb2.TOKEN_ALGORITHM_MACAROON


def issue(keyhold):
    """Creates a key of a unique actor, with the scopes read and deploy."""
    return keyhold.issued.CreateIssuedApiKey(
        issued_api_keys_pb2.CreateIssuedApiKeyRequest(
            name="python",
            actor_id=f"python-{secrets.token_hex(8)}",
            scopes=["read", "deploy"],
            metadata={"env": "prod"},
        )
    )


def derive(keyhold, credential, algorithm, audience=()):
    request = api_keys_pb2.DeriveTokenRequest(credential=credential, algorithm=algorithm, audience=audience)
    return keyhold.keys.DeriveToken(request).token.token


def verify(keyhold, credential):
    return keyhold.keys.VerifyApiKey(api_keys_pb2.VerifyApiKeyRequest(credential=credential))


def verdicts(keyhold, *credentials):
    """Returns `valid`, or the error code without its prefix, for each credential, from one batch."""
    requests = [api_keys_pb2.VerifyApiKeyRequest(credential=credential) for credential in credentials]
    answer = keyhold.keys.BatchVerifyApiKeys(api_keys_pb2.BatchVerifyApiKeysRequest(requests=requests))
    return [verdict_on(result) for result in answer.results]


def verdict_on(answer):
    if answer.is_valid:
        return "valid"
    return api_keys_pb2.VerificationError.Name(answer.error_code).removeprefix("VERIFICATION_ERROR_")
