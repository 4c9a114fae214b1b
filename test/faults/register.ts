/** One key as a register: the states it may be in, what each mutation makes of them, and what a verdict must then say. */

export interface KeyState {
  /** The secret that it was made with; 0: there is no such key. A raw key that is imported again is another incarnation. */
  readonly incarnation: number;
  readonly revoked: boolean;
  readonly scopes: readonly string[];
  /** The secrets that work. */
  readonly live: readonly number[];
}

export type Effect = (state: KeyState) => KeyState;

export const NO_KEY: KeyState = { incarnation: 0, revoked: false, scopes: [], live: [] };

export function created(secret: number, scopes: readonly string[]): Effect {
  return () => ({ incarnation: secret, revoked: false, scopes, live: [secret] });
}

export function rotated(secret: number, isGraceful: boolean): Effect {
  return (state) => ({ ...state, live: isGraceful ? [...state.live, secret] : [secret] });
}

export function updated(scopes: readonly string[]): Effect {
  return (state) => ({ ...state, scopes });
}

export const revoked: Effect = (state) => ({ ...state, revoked: true });

export const deleted: Effect = () => NO_KEY;

/** Something that a client may show, and of which the state of the key decides. */
export interface Credential {
  readonly type: "secret" | "raw" | "JWT" | "MACAROON";
  readonly text: string;
  readonly incarnation: number;
  /** The secret that it is or was derived from. */
  readonly secret: number;
  /** Scopes of a token; null: those of the key. */
  readonly scopes: readonly string[] | null;
}

/** What verification must say of a credential: `valid` with the scopes, or the code without its prefix. */
export function verdictOn(credential: Credential, state: KeyState): string {
  if (state.incarnation === 0) return "NOT_FOUND";
  if (credential.type !== "raw") {
    if (state.incarnation !== credential.incarnation) return "NOT_FOUND";
    if (!state.live.includes(credential.secret)) return "REVOKED";
  }
  if (state.revoked) return "REVOKED";
  return valid(credential.scopes?.filter((scope) => state.scopes.includes(scope)) ?? state.scopes);
}

export function valid(scopes: readonly string[]): string {
  return `valid ${scopes.join(" ")}`;
}

/** What a list must say of the key's record. */
export function recordOf({ incarnation, revoked, scopes }: KeyState): string {
  if (incarnation === 0) return "absent";
  return `${revoked ? "REVOKED" : "ACTIVE"} ${scopes.join(" ")}`;
}
