import type { ApiKey, KeyKind } from "./key.ts";
import type { Principal } from "./principal.ts";

export type ChangeVerb =
  | "issue"
  | "import"
  | "update"
  | "rotate"
  | "endGrace"
  | "revoke"
  | "disable"
  | "enable"
  | "delete"
  | "adopt"
  | "adjustQuota";

/** One committed change of one key. A bulk import makes one for each key that it stores. */
export interface Change {
  readonly verb: ChangeVerb;
  readonly key: { readonly keyId: string; readonly kind: KeyKind };
  /** The key as it was when the change was made; null: it did not exist. */
  readonly before: ApiKey | null;
  /** The key as the change left it; null: it was deleted. */
  readonly after: ApiKey | null;
  readonly principal: Principal;
}

/**
 * Receives the changes of one commit, as soon as it is known: before the caller has its response, and also if that is
 * `CHANGE_UNCONFIRMED`. Not called for what changed nothing, such as a repeated request. A change whose commit was not answered,
 * because the connection was lost, is not known: what must not miss any belongs in the transaction. Must not throw.
 */
export type ChangeObserver = (changes: readonly Change[]) => void;
