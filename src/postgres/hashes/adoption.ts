import type { Change } from "../../domain/change.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Adoption, StoreAdoption } from "../../hashing/adopter.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Commit } from "../cluster/change-committer.ts";
import type { KeyStatement } from "../cluster/group-commit.ts";
import { hex } from "../connection/array-types.ts";
import { callContext } from "../connection/call-context.ts";
import { text } from "../connection/fragments.ts";
import { type Execution, execute } from "../connection/prepared.ts";
import { FINAL_EXPIRE_TIME } from "../keys/authorization.ts";
import { type ChangedRow, forward, type NoRow, toChange, updateRow } from "../keys/change-one.ts";
import { active } from "../keys/expiry.ts";

/**
 * Stores the digests of a raw key in place of that of its hash, unless the key has changed its digest. Of concurrent adoptions one changes the
 * row. Resolves when it is committed, and waits for no other node: before and after it the same raw key is accepted. Therefore it does not evict
 * the key either, which its notification does: if the database is unreachable, the node may still need it for stale verdicts.
 *
 * @throws if a key with this raw key was imported since, or the database cannot be written
 */
export function createAdoptionStore(commit: Commit, clock: Clock): StoreAdoption {
  return async (adoption, principal) => {
    const now = new Date(clock.now());
    const change: KeyStatement<Change | null> = {
      keyId: adoption.keyId,
      query: (sql) => execute(sql, adoptKey(adoption, principal, now)),
      resultOf: (row: ChangedRow | NoRow) => (row["before.keyId"] === null ? null : toChange("adopt", row, principal)),
    };
    const { result } = await commit(change, {
      statement: "keys.adopt",
      changesOf: (made) => (made === null ? [] : [made]),
    });
    return result === null ? "already" : "adopted";
  };
}

/** Importing the same fast hash again must still conflict, so its digests are kept. Those of a prefix would keep others from being imported. */
const SET_ADOPTED = text`
  digest = $digest, digest_key_id = $digestKeyId,
  other_digests = $otherDigests::jsonb || CASE WHEN hash_parameters IS NULL THEN coalesce(other_digests, '[]') ||
    jsonb_build_object('digest', encode(digest, 'hex'), 'digest_key_id', digest_key_id) ELSE '[]' END,
  expire_time = ${FINAL_EXPIRE_TIME},
  hash_algorithm = NULL, hash_scheme_id = NULL, hash_parameters = NULL, hash_prefix_length = NULL,
  adopt_before_time = NULL, adopted_expire_time = NULL, adopt_time = $now, update_time = ${forward(text, "$now")}`;

/** A key that some node may have rejected as expired must not live on. */
const ADOPT = updateRow(["updateTime", "expireTime", "hashAlgorithm", "adoptBeforeTime", "adoptTime"], SET_ADOPTED, [
  text`hash_algorithm IS NOT NULL`,
  text`digest = $hashDigest`,
  active(text, "$now"),
]);

function adoptKey({ keyId, hashDigest, digest, otherDigests }: Adoption, principal: Principal, now: Date): Execution {
  const values = {
    keyId,
    kind: "imported",
    hashDigest: hashDigest.digest,
    digest: digest.digest,
    digestKeyId: digest.keyId,
    call: callContext(principal),
    now,
  };
  const others = otherDigests.map((one) => ({ digest: hex(one.digest), digest_key_id: one.keyId }));
  return { statement: ADOPT, values: { ...values, otherDigests: others } };
}
