import { Code, type ConnectError } from "@connectrpc/connect";
import { errorResponse, jsonFields } from "../wire/error-body.ts";

/** Error codes of OAuth by HTTP status (RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1). */
const ERRORS: Readonly<Record<number, string>> = {
  401: "invalid_client",
  403: "insufficient_scope",
  429: "temporarily_unavailable",
  503: "temporarily_unavailable",
};

export interface OAuthErrorResponse {
  readonly code: number;
  /** The name of the gRPC code, for the log. */
  readonly status: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string;
}

/**
 * Returns the response for an error in the form of OAuth (RFC 6749 §5.2), with the status and headers that REST has. `scope` is the one
 * that the caller needs.
 */
export function oauthError(error: ConnectError, scope: string): OAuthErrorResponse {
  const { code, status, headers } = errorResponse(error);
  const name = ERRORS[code] ?? (code < 500 ? "invalid_request" : "server_error");
  const body = JSON.stringify({ error: name, error_description: descriptionOf(error.rawMessage) });
  const challenges = challengesFor(error.code, scope);
  return {
    ...{ code, status, body },
    headers: { ...headers, ...jsonFields(body), ...(challenges.length > 0 && { "www-authenticate": challenges }) },
  };
}

/** RFC 6749 §5.2 allows neither `"` nor `\`, and ASCII only. */
function descriptionOf(message: string): string {
  return message.replaceAll('"', "'").replace(/[^\x20-\x5b\x5d-\x7e]/g, "?");
}

/** Two fields, because not every client separates challenges in one (RFC 9110 §11.6.1). */
function challengesFor(code: Code, scope: string): string[] {
  if (code === Code.Unauthenticated) return ['Basic realm="keyhold", charset="UTF-8"', 'Bearer realm="keyhold"'];
  if (code === Code.PermissionDenied) return [`Bearer realm="keyhold", error="insufficient_scope", scope="${scope}"`];
  return [];
}
