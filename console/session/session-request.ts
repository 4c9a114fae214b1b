import { pagePath } from "./page-settings.ts";

/** The server has rejected the begin or the end of a session. */
export class SessionRequestError extends Error {
  override readonly name = "SessionRequestError";
  /** The status of HTTP. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Begins or ends the session of this page, which is a cookie. Rejects with the error of the server if it does not. */
export async function requestSession(
  method: "POST" | "DELETE",
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(`${pagePath}/session`, { method, headers });
  if (response.ok) return response;
  const { error } = await response.json();
  throw new SessionRequestError(response.status, error.message);
}
