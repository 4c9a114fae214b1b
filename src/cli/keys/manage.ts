import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { RevocationReason } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { type AdjustmentOptions, deltaOf, ipRestrictionTo } from "../options.ts";
import { tableText, write, writeJson, writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { restJson, writeMessage } from "../rest-json.ts";
import type { NewKeyOptions } from "./create.ts";
import { endGraceWhenIdle, type WaitOptions } from "./wait-idle.ts";

export async function get(keyId: string, options: RemoteOptions): Promise<void> {
  const { apiKeys } = await openRemote(options);
  await writeMessage(await apiKeys.getApiKey({ keyId }), options);
}

interface UpdateOptions extends Partial<NewKeyOptions> {
  readonly clearScopes?: true;
  readonly clearMetadata?: true;
  readonly clearExpiry?: true;
  readonly allowAnyIp?: true;
  readonly clearRateLimits?: true;
  readonly clearQuotas?: true;
}

/** Updates the fields of the options; each replaces the earlier value. */
export async function update(keyId: string, options: UpdateOptions): Promise<void> {
  const { name, scope, clearScopes, metadata, clearMetadata, ttl, expireTime, clearExpiry, allowIp, allowAnyIp } =
    options;
  const { rateLimit: rateLimits, clearRateLimits, quota: quotas, clearQuotas } = options;
  const changes = { name, scopes: scope ?? (clearScopes && []), metadata: metadata ?? (clearMetadata && {}), ttl };
  const ipRestriction = ipRestrictionTo(allowIp);
  const paths = Object.entries(changes).flatMap(([path, value]) => (value === undefined ? [] : path));
  // In the mask without a value, it is cleared.
  if (ipRestriction !== undefined || allowAnyIp) paths.push("ip_restriction");
  if (expireTime !== undefined || clearExpiry) paths.push("expire_time");
  if (rateLimits !== undefined || clearRateLimits) paths.push("rate_limits");
  if (quotas !== undefined || clearQuotas) paths.push("quotas");
  if (paths.length === 0) {
    const options =
      "--name, --scope, --metadata, --ttl, --expire-time, --allow-ip, --allow-any-ip, --rate-limit, --quota, or one of --clear-…";
    throw invalidArgument("options", `nothing to update; set at least one of ${options}`);
  }
  const [key, updateMask] = [{ keyId, ...changes, expireTime, ipRestriction, rateLimits, quotas }, { paths }];
  const { issuedApiKeys, importedApiKeys } = await openRemote(options);
  const updated = await ofEitherKind(
    keyId,
    () => issuedApiKeys.updateIssuedApiKey({ issuedApiKey: key, updateMask }),
    () => importedApiKeys.updateImportedApiKey({ importedApiKey: key, updateMask }),
  );
  await writeMessage(updated, options);
}

/** Returns the result of the first call that finds the key: it is an issued or an imported one. Throws `API_KEY_NOT_FOUND` if none does. */
async function ofEitherKind(keyId: string, ...calls: readonly (() => Promise<Message>)[]): Promise<Message> {
  for (const call of calls) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ConnectError && error.code === Code.NotFound)) throw error;
    }
  }
  throw new KeyholdError("API_KEY_NOT_FOUND", `no such key: ${keyId}`, { metadata: { key_id: keyId } });
}

export async function disable(keyId: string, options: RemoteOptions & { readonly reason?: string }): Promise<void> {
  const { apiKeys } = await openRemote(options);
  await writeMessage(await apiKeys.disableApiKey({ keyId, reason: options.reason }), options);
}

export async function enable(keyId: string, options: RemoteOptions): Promise<void> {
  const { apiKeys } = await openRemote(options);
  await writeMessage(await apiKeys.enableApiKey({ keyId }), options);
}

type AdjustOptions = RemoteOptions & AdjustmentOptions;

export async function adjustQuota(keyId: string, name: string, options: AdjustOptions): Promise<void> {
  const delta = deltaOf(options);
  const { apiKeys } = await openRemote(options);
  await writeMessage(await apiKeys.adjustQuota({ keyId, name, delta }), options);
}

/** Shows the limits of a key and of its actor with their state, which charges nothing. */
export async function limits(keyId: string, options: RemoteOptions): Promise<void> {
  const { apiKeys } = await openRemote(options);
  const states = restJson(await apiKeys.explainApiKey({ keyId })).limits;
  const rows = Array.isArray(states) ? states.filter(isJsonObject) : [];
  if (options.json === true) return writeJson(rows);
  const cells = rows.map((row) => {
    const { name, quota, window, period, remaining, reset_time } = row;
    const unit = window === "" ? String(period).replace("QUOTA_PERIOD_", "").toLowerCase() : window;
    return [name, `${quota}/${unit}`, remaining, reset_time].map((value) => String(value ?? ""));
  });
  await write([tableText(cells, ["LIMIT", "QUOTA", "REMAINING", "RESET"])]);
}

export async function endGrace(keyId: string, options: Partial<WaitOptions>): Promise<void> {
  const { waitIdle, ...remote } = options;
  const { issuedApiKeys } = await openRemote(remote);
  const key = await (waitIdle === undefined
    ? issuedApiKeys.endGracePeriod({ keyId })
    : endGraceWhenIdle(keyId, { ...remote, waitIdle }));
  if (key !== undefined) await writeMessage(key, remote);
}

export async function deleteKey(keyId: string, options: RemoteOptions): Promise<void> {
  const { importedApiKeys } = await openRemote(options);
  await importedApiKeys.deleteImportedApiKey({ keyId });
  await writeObject(options.json === true ? {} : { key_id: keyId, status: "deleted" }, options);
}

export const REASONS = {
  "key-compromise": RevocationReason.KEY_COMPROMISE,
  "affiliation-changed": RevocationReason.AFFILIATION_CHANGED,
  superseded: RevocationReason.SUPERSEDED,
  "privilege-withdrawn": RevocationReason.PRIVILEGE_WITHDRAWN,
};

interface RevokeOptions extends RemoteOptions, CredentialOptions {
  readonly reason?: keyof typeof REASONS;
  readonly description?: string;
  readonly self?: boolean;
  readonly includeDescendants?: boolean;
}

/** Revokes by key id or, with `--self`, by the key's own secret, without an admin token. */
export async function revoke(keyId: string | undefined, options: RevokeOptions): Promise<void> {
  const { self = false, credentialFile, description, includeDescendants = false } = options;
  if (self === (keyId !== undefined))
    throw invalidArgument("KEY_ID", "set either a key id, or --self with the secret on stdin");
  if (credentialFile !== undefined && !self) throw invalidArgument("--credential-file", "requires --self");
  if (description !== undefined && self) throw invalidArgument("--description", "cannot be used with --self");
  if (includeDescendants && self) throw invalidArgument("--include-descendants", "cannot be used with --self");
  const reason = options.reason && REASONS[options.reason];
  const { selfService, apiKeys } = await openRemote(options);
  if (keyId === undefined) {
    const credential = await readCredential(options);
    return writeMessage(await selfService.selfRevokeApiKey({ credential, reason }), options);
  }
  const request = { keyId, reason, revocationDescription: description, includeDescendants };
  let revoked = await apiKeys.revokeApiKey(request);
  while (revoked.done === false) {
    const { descendantCount = 0 } = revoked;
    revoked = await apiKeys.revokeApiKey(request);
    revoked.descendantCount = descendantCount + (revoked.descendantCount ?? 0);
  }
  await writeMessage(revoked, options);
}
