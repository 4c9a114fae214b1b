// The life of a key over gRPC. Reads KEYHOLD_URL and KEYHOLD_TOKEN.
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { RevocationReason } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService, TokenAlgorithm, VerificationError } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";

const { KEYHOLD_URL: baseUrl = "http://127.0.0.1:4420", KEYHOLD_TOKEN: adminToken } = process.env;

const authenticate: Interceptor = (next) => (request) => {
  request.header.set("authorization", `Bearer ${adminToken}`);
  return next(request);
};
const transport = createGrpcTransport({ baseUrl, interceptors: [authenticate] });
const issuedApiKeys = createClient(IssuedApiKeysService, transport);
const apiKeys = createClient(ApiKeysService, transport);

const { secret: credential, issuedApiKey } = await issuedApiKeys.createIssuedApiKey({
  name: "deploy bot",
  actorId: "team_42",
  scopes: ["read"],
  ttl: "90d",
});
const keyId = issuedApiKey?.keyId;
console.info("issued", keyId);
console.info("the secret is valid:", (await apiKeys.verifyApiKey({ credential })).isValid);

const { token } = await apiKeys.deriveToken({ credential, algorithm: TokenAlgorithm.JWT, ttl: "1h" });
const jwt = token?.token;
console.info("the JWT is valid:", (await apiKeys.verifyApiKey({ credential: jwt })).isValid);

await apiKeys.revokeApiKey({ keyId, reason: RevocationReason.SUPERSEDED });
const { errorCode = VerificationError.UNSPECIFIED } = await apiKeys.verifyApiKey({ credential: jwt });
console.info("after the revocation:", VerificationError[errorCode]);
