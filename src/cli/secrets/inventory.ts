import { countDigestKeys, type DigestKeyUse } from "../../postgres/digest-keys.ts";
import type { Database } from "../../postgres/pool.ts";
import { listUsedRootSecrets } from "../../postgres/used-root-secrets.ts";
import type { Rings } from "../../server/resources.ts";
import { isInUse, type SigningKeyRecord } from "../../token/signing-key.ts";

/**
 * `staged`: given beside the current one, and never the current one of a server. `missing`: something in the database was made under
 * it, and it was not given.
 */
export type RootSecretState = "current" | "staged" | "retired" | "missing";

/** A root secret, and what would be refused without it. */
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

/** The current root secret, the others that are given, in their order, then those that are missing. */
export async function takeInventory({ database, rings, signingKeys, now }: InventoryContext): Promise<RootSecretUse[]> {
  const uses = new Map((await countDigestKeys(database, new Date(now))).map((use) => [use.digestKeyId, use]));
  const used = await listUsedRootSecrets(database);
  const wrapped = Map.groupBy(
    signingKeys.filter((key) => isInUse(key, now)),
    ({ wrapKeyId }) => wrapKeyId,
  );
  // All rings are derived from the same root secrets in the same order.
  const given = rings.digest.all.map(({ id }, place): RootSecretUse => {
    const keys = wrapped.get(rings.signingKeyWrap.all[place]?.id ?? "") ?? [];
    const state = stateOf(place, used.has(id) || uses.has(id));
    return { ...(uses.get(id) ?? NONE), id, state, signingKeys: keys.length };
  });
  const missing = [...uses.values()].filter(({ digestKeyId }) => rings.digest.find(digestKeyId) === undefined);
  return [
    ...given,
    ...missing.map((use) => ({ ...use, id: use.digestKeyId, state: "missing" as const, signingKeys: 0 })),
  ].map(({ id, state, issued, imported, inGrace, signingKeys }) => ({
    id,
    state,
    issued,
    imported,
    inGrace,
    signingKeys,
  }));
}

function stateOf(place: number, isUsed: boolean): RootSecretState {
  if (place === 0) return "current";
  return isUsed ? "retired" : "staged";
}

/** Whether it must be kept: something that works would be refused without it, or it is in use or to be used next. */
export function isNeeded({ state, issued, imported, inGrace, signingKeys }: RootSecretUse): boolean {
  return state === "current" || state === "staged" || issued + imported + inGrace + signingKeys > 0;
}
