import { Code, ConnectError } from "@connectrpc/connect";
import { queryClient, refreshSession } from "../session/query-client.ts";
import { requestSession, SessionRequestError } from "../session/session-request.ts";

/** What the link has led to. `none`: the page was opened without one, as by a reload. */
export type LinkResult =
  | { readonly state: "none" | "opened" | "rejected" }
  | { readonly state: "failed"; readonly error: Error; readonly retry: () => Promise<LinkResult> };

/** Returns the token of the link, and removes it from the address and the history of the browser. Null: there is none. */
export function takeToken(): string | null {
  const token = location.hash.slice(1);
  if (token === "") return null;
  history.replaceState(null, "", location.pathname + location.search);
  return token;
}

/** Begins the session that the link is for. A link works once. Only the result of an attempt that can be retried keeps its token. */
export async function openLink(token: string | null): Promise<LinkResult> {
  if (token === null) return { state: "none" };
  try {
    await requestSession("POST", { authorization: `Bearer ${token}` });
    return { state: "opened" };
  } catch (error) {
    const retry = () => openLink(token);
    if (!(error instanceof SessionRequestError)) return { state: "failed", error: ConnectError.from(error), retry };
    // Text that has not the form of a token is rejected by 400.
    if (error.status === 400 || error.status === 401) return { state: "rejected" };
    const code = error.status === 503 ? Code.Unavailable : Code.FailedPrecondition;
    return { state: "failed", error: new ConnectError(error.message, code), retry };
  }
}

/** Ends the session in this browser. */
export async function endSession(): Promise<void> {
  await requestSession("DELETE");
  await refreshSession();
}

/** Forgets what was read in the session. */
export function forgetSession(): void {
  queryClient.getMutationCache().clear();
  queryClient.removeQueries({ type: "inactive" });
}
