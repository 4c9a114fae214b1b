import type { Database } from "../../postgres/pool.ts";
import { countDigestKeys, type DigestKeyUse, listUsedRootSecrets } from "../../postgres/root-secret-use.ts";
import { isInUse, type SigningKeyRecord } from "../../token/signing-key.ts";
import type { Rings } from "./rings.ts";

/**
 * `staged`: configured, and never the current one of a server. `missing`: not configured, although something in the database was made
 * under it.
 */
export type RootSecretState = "current" | "staged" | "retired" | "missing";

/** A root secret, and what would be rejected without it. */
export interface RootSecretUse extends Omit<DigestKeyUse, "digestKeyId"> {
  /** A public fingerprint, 16 hexadecimal digits: that of the server key for digests, which stands beside each digest. */
  readonly id: string;
  readonly state: RootSecretState;
  /** Signing keys in use that are wrapped under it. */
  readonly signingKeys: number;
}

export interface InventoryContext {
  readonly database: Database;
  readonly rings: Pick<Rings, "digest" | "signingKeyWrap">;
  readonly signingKeys: readonly SigningKeyRecord[];
  /** Milliseconds. */
  readonly now: number;
}

const NONE = { issued: 0, imported: 0, inGrace: 0 };

/** Returns the use of the current root secret, then of the others given, in their order, then of those that are missing. */
export async function takeInventory({ database, rings, signingKeys, now }: InventoryContext): Promise<RootSecretUse[]> {
  const uses = new Map(
    (await countDigestKeys(database, new Date(now))).map(({ digestKeyId, ...counts }) => [digestKeyId, counts]),
  );
  const used = await listUsedRootSecrets(database);
  const wrapped = Map.groupBy(
    signingKeys.filter((key) => isInUse(key, now)),
    ({ wrapKeyId }) => wrapKeyId,
  );
  // All rings are derived from the same root secrets in the same order.
  const given = rings.digest.all.map(({ id }, place): RootSecretUse => {
    const keys = wrapped.get(rings.signingKeyWrap.all[place]?.id ?? "") ?? [];
    const state = stateOf(place, used.has(id) || uses.has(id));
    return { id, state, ...(uses.get(id) ?? NONE), signingKeys: keys.length };
  });
  const missing = [...uses].filter(([id]) => rings.digest.find(id) === undefined);
  return [...given, ...missing.map(([id, counts]) => ({ id, state: "missing" as const, ...counts, signingKeys: 0 }))];
}

function stateOf(place: number, isUsed: boolean): RootSecretState {
  if (place === 0) return "current";
  return isUsed ? "retired" : "staged";
}

/** Whether it must be kept: it is in use, or staged, or credentials that work would be rejected without it. */
export function isNeeded({ state, issued, imported, inGrace, signingKeys }: RootSecretUse): boolean {
  return state === "current" || state === "staged" || issued + imported + inGrace + signingKeys > 0;
}
