/** Returns what the document says in a `meta` element, most of it written by the server. Empty: nothing. */
export function setting(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="keyhold-${name}"]`)?.content ?? "";
}

/** The path below which the server serves this page, its session and the API for it: `/console` or `/keys`. */
export const pagePath = setting("path");

/** The first characters of the secrets that the server issues, such as `kh_v1_`. */
export const secretHead = `${setting("secret-prefix")}_v1_`;

/** The host of the issuer at which people sign in by OpenID Connect; empty: they cannot. */
export const oidcIssuer = setting("oidc-issuer");

export const acceptsAdminTokens = setting("admin-tokens") === "true";

/** The nonce of style elements (CSP Level 3). Browsers hide the attribute from scripts that read the document. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";

// The nonce of the style element by which an open dialog keeps the page from scrolling (package get-nonce).
Object.assign(globalThis, { __webpack_nonce__: nonce });
