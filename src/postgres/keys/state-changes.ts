import type { Fragment, Sql } from "postgres";
import type { Change } from "../../domain/change.ts";
import type { ApiKey } from "../../domain/key.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Revocation } from "../../keys/ports.ts";
import { toApiKey } from "./rows.ts";

/** Never moves the time back: the later of two changes may have begun first, or on a server whose clock is behind. */
export function forward(sql: Sql, now: Date): Fragment {
  return sql`greatest(update_time, ${now})`;
}

/** Returns the SET clause of a revocation. */
export function setRevoked(sql: Sql, { reason, description }: Revocation, now: Date): Fragment {
  return sql`
    revoke_time = ${now}, revocation_reason = ${reason}, revocation_description = ${description}, update_time = ${forward(sql, now)}`;
}

/** Returns the SET clause of a disabling. */
export function setDisabled(sql: Sql, reason: string | null, now: Date): Fragment {
  return sql`disable_time = ${now}, disable_reason = ${reason}, update_time = ${forward(sql, now)}`;
}

/** What a key has before, in the columns that the change sets: it was neither revoked nor disabled, by the condition of the change. */
const BEFORE = {
  revoke: { revokeTime: null, revocationReason: null, revocationDescription: null },
  disable: { disableTime: null, disableReason: null },
} as const satisfies Readonly<Record<string, Partial<ApiKey>>>;

/** A key after a change of many, with the one column before it that does not follow from the change. */
export type ChangedRow = ApiKey & { readonly beforeUpdateTime: Date };

export function toStateChange(verb: keyof typeof BEFORE, row: ChangedRow, principal: Principal): Change {
  const after = toApiKey(row);
  const before = { ...after, ...BEFORE[verb], updateTime: row.beforeUpdateTime };
  return { verb, key: after, before, after, principal };
}
