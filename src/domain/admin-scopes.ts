/** The right to everything, this service's own keys included. */
export const ADMIN_SCOPE = "keyhold:admin";

/** Rights over Keyhold, as scopes of an admin token or of an OIDC access token (docs/api.md). */
export const ADMIN_SCOPES = [
  ADMIN_SCOPE,
  "keyhold:keys.read",
  "keyhold:keys.write",
  "keyhold:verify",
  "keyhold:derive",
] as const;

export type AdminScope = (typeof ADMIN_SCOPES)[number];

/**
 * The prefix of scopes that are rights over Keyhold itself. Only a caller that holds such a scope may create, change, rotate, revoke or
 * delete a key that has it: otherwise the right to manage keys would include every right.
 */
export const RESERVED_SCOPE_PREFIX = "keyhold:";

/** What a call needs: nothing, or a caller with this scope (or `keyhold:admin`). A `probe` is not rate-limited either. */
export type Policy = "public" | "probe" | AdminScope;
