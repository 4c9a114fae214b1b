"""The life cycle of a key over gRPC. Reads KEYHOLD_URL and KEYHOLD_TOKEN."""

import os
from urllib.parse import urlsplit

import grpc

from keyhold.v2alpha1 import api_keys_pb2, api_keys_pb2_grpc, issued_api_keys_pb2, issued_api_keys_pb2_grpc

address = urlsplit(os.environ["KEYHOLD_URL"])
metadata = [("authorization", f"Bearer {os.environ['KEYHOLD_TOKEN']}")]


def verify(credential):
    return keys.VerifyApiKey(api_keys_pb2.VerifyApiKeyRequest(credential=credential), metadata=metadata)


is_tls = address.scheme == "https"
dial = grpc.secure_channel if is_tls else grpc.insecure_channel
credentials = [grpc.ssl_channel_credentials()] if is_tls else []
with dial(address.netloc, *credentials) as channel:
    issued_keys = issued_api_keys_pb2_grpc.IssuedApiKeysServiceStub(channel)
    keys = api_keys_pb2_grpc.ApiKeysServiceStub(channel)

    issued = issued_keys.CreateIssuedApiKey(
        issued_api_keys_pb2.CreateIssuedApiKeyRequest(
            name="deploy bot", actor_id="team_42", scopes=["read"], ttl="90d"
        ),
        metadata=metadata,
    )
    print("issued", issued.issued_api_key.key_id)
    print("the secret is valid:", verify(issued.secret).is_valid)

    derived = keys.DeriveToken(
        api_keys_pb2.DeriveTokenRequest(credential=issued.secret, algorithm="TOKEN_ALGORITHM_JWT", ttl="1h"),
        metadata=metadata,
    )
    print("the JWT is valid:", verify(derived.token.token).is_valid)

    keys.RevokeApiKey(
        api_keys_pb2.RevokeApiKeyRequest(key_id=issued.issued_api_key.key_id, reason="REVOCATION_REASON_SUPERSEDED"),
        metadata=metadata,
    )
    error_code = verify(derived.token.token).error_code
    print("after the revocation:", api_keys_pb2.VerificationError.Name(error_code))
