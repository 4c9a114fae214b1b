import type { JsonObject } from "../lib/json.ts";

/** The content of a derived token, of either form. Times are milliseconds since the epoch. */
export interface TokenContent {
  /** Claim `iss` of a JWT, location of a macaroon. */
  readonly issuer: string;
  readonly tokenId: string;
  /** Rounded down to the second. */
  readonly issueTime: number;
  /** Exclusive. Of a JWT, rounded down to the second. */
  readonly expireTime: number;
  readonly scopes: readonly string[];
  /** The API key that it is derived from: a UUID in lower case. */
  readonly keyId: string;
  /** Version of that key's secret at derivation. */
  readonly secretVersion: number;
  /** `tokenId` of the parent token; absent if derived from a key. */
  readonly parentId?: string | undefined;
  /** The services that may accept it; absent: any. */
  readonly audience?: readonly string[] | undefined;
  readonly claims: JsonObject;
}

export interface MintedToken {
  readonly token: string;
  /** The expiry as the token has it, in milliseconds. */
  readonly expireTime: number;
}

export interface RejectedToken {
  readonly ok: false;
  readonly reason: "INVALID_FORMAT" | "SIGNATURE_INVALID" | "EXPIRED";
  /** For people; contains nothing of the token. */
  readonly message: string;
  /** The content of an expired token, whose signature is valid. */
  readonly expired?: TokenContent;
}

export type TokenVerdict<T extends TokenContent = TokenContent> =
  | { readonly ok: true; readonly token: T }
  | RejectedToken;

export function rejected(reason: RejectedToken["reason"], message: string): RejectedToken {
  return { ok: false, reason, message };
}

/** Returns whether a value is a safe integer of at least 0. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
