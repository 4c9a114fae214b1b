import type { TreeKey } from "../../audit/tree/tree-key.ts";
import type { StoredHashing } from "../../hashing/store.ts";
import type { Database } from "../../postgres/connection/pool.ts";
import { countDigestKeys, listUsedRootSecrets } from "../../postgres/signing/root-secret-use.ts";
import { isInUse, type SigningKeyRecord } from "../../token/signing-key.ts";
import type { EndpointSecrets } from "../../webhooks/endpoint.ts";
import type { Rings } from "./rings.ts";

/**
 * A root secret (`rootSecretId`), with counts of what would be rejected without it. `staged`: configured, and never the current one of a
 * server. `missing`: not configured, although something in the database was made under it.
 */
export type RootSecretUse = Awaited<ReturnType<typeof takeInventory>>[number];

export interface InventoryContext {
  readonly database: Database;
  readonly rings: Pick<Rings, "digest" | "signingKeyWrap" | "hashSchemeWrap" | "webhookSecretWrap">;
  readonly signingKeys: readonly SigningKeyRecord[];
  readonly hashing: StoredHashing;
  /** The key of the audit log, which counts as a signing key; null: there is none. */
  readonly treeKey: TreeKey | null;
  readonly webhooks: readonly EndpointSecrets[];
  /** Milliseconds. */
  readonly now: number;
}

const NONE = { issued: 0, imported: 0, inGrace: 0 };

/** Returns the use of the current root secret, then of the other configured ones, in their order, then of those that are missing. */
export async function takeInventory(context: InventoryContext) {
  const { database, rings, signingKeys, hashing, treeKey, webhooks, now } = context;
  const uses = new Map(
    (await countDigestKeys(database, new Date(now))).map(({ digestKeyId, ...counts }) => [digestKeyId, counts]),
  );
  const used = await listUsedRootSecrets(database);
  const wrapped = Map.groupBy(
    [...signingKeys.filter((key) => isInUse(key, now)), ...(treeKey === null ? [] : [treeKey])],
    ({ wrapKeyId }) => wrapKeyId,
  );
  const hashSecrets = hashSecretsBy(hashing);
  const webhookSecrets = Map.groupBy(
    webhooks.flatMap(({ secret, oldSecret }) => (oldSecret === null ? [secret] : [secret, oldSecret])),
    ({ wrapKeyId }) => wrapKeyId,
  );
  // All rings are derived from the same root secrets in the same order.
  const configured = rings.digest.all.map(({ id }, place) => {
    const keys = wrapped.get(rings.signingKeyWrap.all[place]?.id ?? "") ?? [];
    const state = stateOf(place, used.has(id) || uses.has(id));
    const secrets = hashSecrets.get(rings.hashSchemeWrap.all[place]?.id ?? "") ?? [];
    const ofWebhooks = webhookSecrets.get(rings.webhookSecretWrap.all[place]?.id ?? "") ?? [];
    const counts = { signingKeys: keys.length, hashSecrets: secrets.length, webhookSecrets: ofWebhooks.length };
    return { id, state, ...(uses.get(id) ?? NONE), ...counts };
  });
  const missing = [...uses].filter(([id]) => rings.digest.find(id) === undefined);
  const unknown = { state: "missing" as const, signingKeys: 0, hashSecrets: 0, webhookSecrets: 0 };
  return [...configured, ...missing.map(([id, counts]) => ({ id, ...unknown, ...counts }))];
}

function hashSecretsBy({ hmacKeys, schemes }: StoredHashing) {
  const wrapped = [...hmacKeys, ...schemes.flatMap(({ affixes }) => affixes ?? [])];
  return Map.groupBy(wrapped, ({ wrapKeyId }) => wrapKeyId);
}

function stateOf(place: number, isUsed: boolean) {
  if (place === 0) return "current";
  return isUsed ? "retired" : "staged";
}

/** Whether the root secret must be kept: it is in use or staged, or valid credentials would be rejected without it. */
export function isNeeded({ id: _, state, ...counts }: RootSecretUse): boolean {
  return state === "current" || state === "staged" || Object.values(counts).some((count) => count > 0);
}
