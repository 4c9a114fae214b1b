// The life cycle of a key. Reads KEYHOLD_URL and KEYHOLD_TOKEN.
import { createKeyholdClient, RevocationReason, TokenAlgorithm, VerificationError } from "@keyhold/client";

const { KEYHOLD_URL: baseUrl = "http://127.0.0.1:4420", KEYHOLD_TOKEN: token } = process.env;

const keyhold = createKeyholdClient({ baseUrl, token });

const { secret: credential, issuedApiKey } = await keyhold.issuedApiKeys.createIssuedApiKey({
  name: "deploy bot",
  actorId: "team_42",
  scopes: ["read"],
  ttl: "90d",
});
const keyId = issuedApiKey?.keyId;
console.info("issued", keyId);
console.info("the secret is valid:", (await keyhold.apiKeys.verifyApiKey({ credential })).isValid);

const derived = await keyhold.apiKeys.deriveToken({ credential, algorithm: TokenAlgorithm.JWT, ttl: "1h" });
const jwt = derived.token?.token;
console.info("the JWT is valid:", (await keyhold.apiKeys.verifyApiKey({ credential: jwt })).isValid);

await keyhold.apiKeys.revokeApiKey({ keyId, reason: RevocationReason.SUPERSEDED });
const { errorCode = VerificationError.UNSPECIFIED } = await keyhold.apiKeys.verifyApiKey({ credential: jwt });
console.info("after the revocation:", VerificationError[errorCode]);
