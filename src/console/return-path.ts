const HOME = "/console";

/** Longer ones would take the room of the rest of the cookie. */
const MAX_LENGTH = 1024;

/** What browsers, or proxies that decode a path, may take for the beginning of another host. */
const OTHER_HOST = /^\/(?:[/\\]|%2f|%5c)/i;

/** Paths that are not pages. A sign-in that returns to a sign-in would never end. */
const NO_PAGE = /^\/console\/(?:api|assets|oidc|session)(?:[/?#]|$)/;

/**
 * Returns the path, of this server, of a page of the console: `path` is relative to /console, such as `/keys?filter=x`. Anything that is no
 * such path is replaced by /console, so that a link cannot lead a person elsewhere after signing in (open redirect).
 */
export function returnPath(path: string | null): string {
  if (path === null || !path.startsWith("/")) return HOME;
  // As the browser would: resolves dot segments, also encoded ones, turns backslashes, and drops tabs and newlines.
  const url = URL.parse(`${HOME}${path}`, "http://console.invalid");
  if (url === null || !url.pathname.startsWith(`${HOME}/`) || NO_PAGE.test(url.pathname)) return HOME;
  if (OTHER_HOST.test(url.pathname.slice(HOME.length))) return HOME;
  const resolved = `${url.pathname}${url.search}${url.hash}`;
  return resolved.length > MAX_LENGTH ? HOME : resolved;
}
