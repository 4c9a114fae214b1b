import { Code } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../../gen/google/rpc/error_details_pb.js";
import { KeyStatus, RevocationReason } from "../../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { CredentialType, TokenAlgorithm, VerificationError } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Ok } from "../checks.ts";
import { type Clients, refusal } from "./clients.ts";

const { JWT, MACAROON } = TokenAlgorithm;

/** Makes all calls of the life of an issued key. */
export async function lifeOfAKey({ issued, keys }: Clients, ok: Ok): Promise<void> {
  const actorId = `browser_${crypto.randomUUID()}`;
  const metadata = { env: "prod" };
  const { secret, issuedApiKey } = await issued.createIssuedApiKey({
    ...{ name: "browser", actorId, scopes: ["read", "deploy"], ttl: "1h", metadata },
  });
  const keyId = issuedApiKey?.keyId ?? "";
  ok("issue", secret !== undefined && issuedApiKey?.status === KeyStatus.ACTIVE, issuedApiKey);
  const got = await issued.getIssuedApiKey({ keyId });
  ok("get", got.actorId === actorId && got.metadata.env === "prod" && got.createTime !== undefined, got);
  const list = await issued.listIssuedApiKeys({ filter: `actor_id="${actorId}" AND status=KEY_STATUS_ACTIVE` });
  ok("list with a filter", list.issuedApiKeys.length === 1 && list.issuedApiKeys[0]?.keyId === keyId, list);
  const change = { issuedApiKey: { keyId, name: "renamed" }, updateMask: { paths: ["name"] } };
  const updated = await issued.updateIssuedApiKey(change);
  ok("update", updated.name === "renamed" && updated.scopes.length === 2, updated);

  const verdict = await keys.verifyApiKey({ credential: secret });
  ok("verify", verdict.isValid && verdict.keyId === keyId && verdict.scopes.join() === "read,deploy", verdict);
  const derive = async (algorithm: TokenAlgorithm) =>
    (await keys.deriveToken({ credential: secret, algorithm, customClaims: { plan: "pro" } })).token?.token;
  const tokens = [await derive(JWT), await derive(MACAROON)];
  const types = await Promise.all(
    tokens.map(async (credential) => (await keys.verifyApiKey({ credential })).credentialType),
  );
  ok("derive a JWT and a macaroon", types.join() === [CredentialType.JWT, CredentialType.MACAROON].join(), types);

  const rotated = await issued.rotateIssuedApiKey({ keyId, gracePeriod: "1h" });
  ok("rotate", rotated.secret !== secret && rotated.issuedApiKey?.keyId === keyId);
  const requests = [secret, rotated.secret, ...tokens].map((credential) => ({ credential }));
  const verdicts = async () => {
    const { results } = await keys.batchVerifyApiKeys({ requests });
    return results.map(({ isValid, errorCode }) => (isValid ? "valid" : VerificationError[errorCode ?? 0])).join();
  };
  const before = await verdicts();
  ok("secrets and tokens verify in the grace period, in a batch", before === "valid,valid,valid,valid", before);

  const revoked = await keys.revokeApiKey({ keyId, reason: RevocationReason.KEY_COMPROMISE });
  ok("revoke", revoked.status === KeyStatus.REVOKED && revoked.revokeTime !== undefined, revoked);
  const after = await verdicts();
  ok("secrets and tokens are revoked at once", after === "REVOKED,REVOKED,REVOKED,REVOKED", after);
  const again = await refusal(keys.revokeApiKey({ keyId, reason: RevocationReason.KEY_COMPROMISE }));
  const [info] = again.findDetails(ErrorInfoSchema);
  const isRefused = again.code === Code.FailedPrecondition && info?.reason === "API_KEY_ALREADY_REVOKED";
  ok("a revoked key cannot be revoked again", isRefused, again);
}
