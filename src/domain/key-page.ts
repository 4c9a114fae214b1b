/** What the owner of keys may be permitted on the key page, beside seeing them. */
export const KEY_PAGE_PERMISSIONS = ["CREATE", "ROTATE", "REVOKE", "VIEW_USAGE"] as const;

export type KeyPagePermission = (typeof KEY_PAGE_PERMISSIONS)[number];

/** What a session of the key page permits to the owner of keys. Contains no secret, and only what JSON has. */
export interface KeyPageGrant {
  readonly actorId: string;
  readonly permissions: readonly KeyPagePermission[];
  /** The scopes that a key may have to be created or rotated. */
  readonly allowedScopes: readonly string[];
  /** The longest life of a key that is created, in milliseconds; null: it need not expire. */
  readonly maxTtl: number | null;
  /** Where the page leads back to; null: nowhere. */
  readonly returnUrl: string | null;
}

/** The scopes over Keyhold of each permission. What such a scope permits beyond the page is denied (`RpcRow.keyPage`). */
const SCOPES = {
  CREATE: "keyhold:keys.issue",
  ROTATE: "keyhold:keys.rotate",
  REVOKE: "keyhold:keys.revoke",
  VIEW_USAGE: "keyhold:keys.read",
} as const satisfies Readonly<Record<KeyPagePermission, string>>;

/** The scopes over Keyhold that a session can have. */
export const ALL_KEY_PAGE_SCOPES: readonly string[] = Object.values(SCOPES);

/** Returns the scopes over Keyhold of a session. */
export function keyPageScopes({ permissions }: KeyPageGrant): readonly string[] {
  return [...new Set(["keyhold:keys.read", ...permissions.map((permission) => SCOPES[permission])])];
}
