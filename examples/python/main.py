"""The life cycle of a key over gRPC. Reads KEYHOLD_URL and KEYHOLD_TOKEN."""

from connect import connect, options
from keyhold.v2alpha1.api_keys_pb2 import DeriveTokenRequest, RevokeApiKeyRequest, VerificationError, VerifyApiKeyRequest
from keyhold.v2alpha1.api_keys_pb2_grpc import ApiKeysServiceStub
from keyhold.v2alpha1.issued_api_keys_pb2 import CreateIssuedApiKeyRequest
from keyhold.v2alpha1.issued_api_keys_pb2_grpc import IssuedApiKeysServiceStub
from verify_stream import VerifyStream

channel = connect()
issued_keys, keys = IssuedApiKeysServiceStub(channel), ApiKeysServiceStub(channel)
create = CreateIssuedApiKeyRequest(name="deploy bot", actor_id="team_42", scopes=["read"])
issued = issued_keys.CreateIssuedApiKey(create, **options)
print("issued", issued.issued_api_key.key_id)
verdict = keys.VerifyApiKey(VerifyApiKeyRequest(credential=issued.secret), **options)
print("the secret is valid:", verdict.is_valid)

derive = DeriveTokenRequest(credential=issued.secret, algorithm="TOKEN_ALGORITHM_JWT", ttl="1h")
jwt = keys.DeriveToken(derive, **options).token.token
# For thousands of verifications per second.
stream = VerifyStream(keys, options["metadata"])
verdict = stream.verify(VerifyApiKeyRequest(credential=jwt))
print("the JWT is valid:", verdict.is_valid)

revoke = RevokeApiKeyRequest(key_id=issued.issued_api_key.key_id, reason="REVOCATION_REASON_SUPERSEDED")
keys.RevokeApiKey(revoke, **options)
verdict = stream.verify(VerifyApiKeyRequest(credential=jwt))
stream.close()
print("after the revocation:", VerificationError.Name(verdict.error_code))
