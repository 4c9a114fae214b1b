/** Model of a key as a register: its states, the effect of each change, and the expected verdicts. */

export interface KeyState {
  /** The secret of its creation, 0 if the key does not exist. Importing a raw key again begins a new generation. */
  readonly generation: number;
  readonly revoked: boolean;
  readonly disabled: boolean;
  readonly scopes: readonly string[];
  /** The valid secrets. */
  readonly live: readonly number[];
}

export type Effect = (state: KeyState) => KeyState;

export const NO_KEY: KeyState = { generation: 0, revoked: false, disabled: false, scopes: [], live: [] };

export function created(secret: number, scopes: readonly string[]): Effect {
  return () => ({ generation: secret, revoked: false, disabled: false, scopes, live: [secret] });
}

export function rotated(secret: number, isGraceful: boolean): Effect {
  return (state) => ({ ...state, live: isGraceful ? [...state.live, secret] : [secret] });
}

export function updated(scopes: readonly string[]): Effect {
  return (state) => ({ ...state, scopes });
}

export const revoked: Effect = (state) => ({ ...state, revoked: true });

export const disabled: Effect = (state) => ({ ...state, disabled: true });

export const enabled: Effect = (state) => ({ ...state, disabled: false });

export const deleted: Effect = () => NO_KEY;

/** A credential, whose verdict depends on the state of the key. */
export interface Credential {
  readonly type: "secret" | "raw" | "JWT" | "MACAROON";
  readonly text: string;
  readonly generation: number;
  /** The secret that it is, or from which it was derived. */
  readonly secret: number;
  /** Scopes of a token; null: those of the key. */
  readonly scopes: readonly string[] | null;
}

/** Returns the expected verdict: `valid` with the scopes, or the error code without its prefix. */
export function verdictOn(credential: Credential, state: KeyState): string {
  if (state.generation === 0) return "NOT_FOUND";
  if (credential.type !== "raw") {
    if (state.generation !== credential.generation) return "NOT_FOUND";
    if (!state.live.includes(credential.secret)) return "REVOKED";
  }
  if (state.revoked) return "REVOKED";
  if (state.disabled) return "DISABLED";
  return valid(credential.scopes?.filter((scope) => state.scopes.includes(scope)) ?? state.scopes);
}

export function valid(scopes: readonly string[]): string {
  return `valid ${scopes.join(" ")}`;
}

/** Returns the expected record in a list. */
export function recordOf({ generation, revoked, disabled, scopes }: KeyState): string {
  if (generation === 0) return "absent";
  const status = revoked ? "REVOKED" : disabled ? "DISABLED" : "ACTIVE";
  return `${status} ${scopes.join(" ")}`;
}
