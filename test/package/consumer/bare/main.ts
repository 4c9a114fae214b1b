import { createKeyholdClient, errorReason, IssuedApiKeysService, TokenAlgorithm } from "@keyhold/client";
import { defineKeyPage } from "@keyhold/client/key-page";
import { createKeyVerifier, createTokenVerifier } from "@keyhold/client/verifier";

/** A program of a user who has installed only the package. Returns its results. */
export async function main(baseUrl: string): Promise<object> {
  // Nothing without a DOM, as in server-side rendering.
  defineKeyPage();
  const client = createKeyholdClient({ baseUrl });
  const { secret = "", issuedApiKey } = await client.issuedApiKeys.createIssuedApiKey({
    name: "packed",
    actorId: "packed",
    scopes: ["read"],
  });
  const keyId: string | undefined = issuedApiKey?.keyId;
  const { token } = await client.apiKeys.deriveToken({ credential: secret, algorithm: TokenAlgorithm.JWT });
  const online = await createKeyVerifier({ client }).verify(secret);
  const offline = await createTokenVerifier({ baseUrl }).verify(token?.token ?? "");
  return {
    hasKeyId: keyId !== undefined,
    online: online.ok && online.credential.actorId,
    // Retries depend on it.
    isIdempotent: IssuedApiKeysService.method.updateIssuedApiKey.idempotency !== 0,
    offline: offline.ok && offline.credential.actorId,
    reason: await client.issuedApiKeys.getIssuedApiKey({ keyId: "x" }).catch(errorReason),
  };
}
