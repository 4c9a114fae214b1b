import type { Principal } from "../domain/principal.ts";
import type { Filter } from "./filter/filter.ts";
import type { Revocation } from "./store.ts";

/** What is done to each of many keys. */
export type BulkChange =
  | ({ readonly verb: "revoke" } & Revocation)
  | { readonly verb: "disable"; readonly reason: string | null };

/** Keys that one statement changes: one slice of a call that changes many. */
export interface ManyChange {
  readonly keyIds: readonly string[];
  readonly change: BulkChange;
  readonly principal: Principal;
  /** Whether the credential of the principal must still be valid. Not if the call itself has revoked it. */
  readonly requiresCaller: boolean;
  readonly now: Date;
}

/** The keys of an operation, and what is done to them: those that match, that the change would change, and that the principal may change. */
export interface BulkSelection {
  readonly filter: Filter;
  /** The `now` of the filter. */
  readonly filterTime: Date;
  readonly change: BulkChange;
  /** The key that the principal has presented is not selected. */
  readonly principal: Principal;
}

/** An operation at its begin. */
export interface NewBulkOperation {
  readonly requestId: string;
  readonly verb: BulkChange["verb"];
  /** A keyed hash of the request and its caller. */
  readonly fingerprint: Uint8Array;
  /** For people, such as `admin-token:<key_id>`. */
  readonly caller: string;
  /** The `now` of the filter. */
  readonly startTime: Date;
  readonly matchedCount: number;
  /** The newest key that matched, which bounds the operation; null: none matched. */
  readonly throughKeyId: string | null;
}

/** An operation as stored. Its keys are changed in ascending order. */
export interface BulkOperation extends Omit<NewBulkOperation, "verb" | "caller"> {
  /** The last key that was examined. */
  readonly afterKeyId: string;
  readonly changedCount: number;
  readonly done: boolean;
}

export interface BulkStep {
  readonly operation: BulkOperation;
  /** The ids of the keys that were changed. */
  readonly changed: readonly string[];
}

/** Stores operations that change many keys, and changes the keys. */
export interface BulkStore {
  /** Returns how many keys are selected, and the newest of them. */
  count(selection: BulkSelection): Promise<Pick<NewBulkOperation, "matchedCount" | "throughKeyId">>;
  find(requestId: string): Promise<BulkOperation | null>;
  /** Stores the operation unless one with its request id exists, and forgets operations that ended long ago. */
  begin(operation: NewBulkOperation): Promise<void>;
  /** Returns the ids of the next keys of the operation, in ascending order, at most `limit`. */
  select(operation: BulkOperation, selection: BulkSelection, limit: number): Promise<string[]>;
  /**
   * Changes the next keys of the operation, and returns them, with the operation as it is then. With `isLast` it ends. Keys and operation are
   * changed in one transaction, and only if the operation is still in this state: another call may have advanced it. Resolves when all
   * changes of the operation are propagated to the other nodes.
   *
   * @throws `CHANGE_UNCONFIRMED`; `CALLER_UNAUTHENTICATED` if the principal's credential is not valid any more; `CONCURRENT_CHANGE`
   * if the operation was forgotten
   */
  advance(operation: BulkOperation, change: ManyChange & BulkSelection, isLast: boolean): Promise<BulkStep>;
  /** Resolves when this node has received every change that is committed now, by whichever node. @throws `DATABASE_UNAVAILABLE` */
  caughtUp(): Promise<void>;
}
