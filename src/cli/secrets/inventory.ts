import type { Rings } from "../../foundation.ts";
import { countDigestKeys, type DigestKeyUse } from "../../postgres/digest-keys.ts";
import type { Database } from "../../postgres/pool.ts";
import { isInUse, type SigningKeyRecord } from "../../token/signing-key.ts";

/** A root secret, and what would be refused without it. */
export interface RootSecretUse extends Omit<DigestKeyUse, "digestKeyId"> {
  /** A public fingerprint, 16 hexadecimal digits: that of the server key for digests, which stands beside each digest. */
  readonly id: string;
  /** `missing`: something in the database was made under it, and it was not given. */
  readonly state: "current" | "retired" | "missing";
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

/** The current root secret, the retired ones, then those that are missing. */
export async function takeInventory({ database, rings, signingKeys, now }: InventoryContext): Promise<RootSecretUse[]> {
  const uses = new Map((await countDigestKeys(database, new Date(now))).map((use) => [use.digestKeyId, use]));
  const wrapped = Map.groupBy(
    signingKeys.filter((key) => isInUse(key, now)),
    ({ wrapKeyId }) => wrapKeyId,
  );
  // All rings are derived from the same root secrets in the same order.
  const given = rings.digest.all.map(({ id }, place): RootSecretUse => {
    const keys = wrapped.get(rings.signingKeyWrap.all[place]?.id ?? "") ?? [];
    return { ...(uses.get(id) ?? NONE), id, state: place === 0 ? "current" : "retired", signingKeys: keys.length };
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

/** Whether something that works would be refused without it. */
export function isNeeded({ issued, imported, inGrace, signingKeys }: RootSecretUse): boolean {
  return issued + imported + inGrace + signingKeys > 0;
}
