import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { pagePath } from "./page-settings.ts";

/** Milliseconds. A list that waits for the database fails after 11 s. */
const LONG = 5_000;

const lateErrors = new WeakSet<Error>();

/** Returns whether the call took so long before it failed that the person should decide whether to repeat it. */
export function hasFailedLate(error: Error): boolean {
  return lateErrors.has(error);
}

const noteLateErrors: Interceptor = (next) => async (request) => {
  const start = performance.now();
  try {
    return await next(request);
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    if (performance.now() - start > LONG) lateErrors.add(error);
    throw error;
  }
};

/** The API with the session of this page as its caller. Only the server can read the session, which is a cookie. */
export const transport = createConnectTransport({
  baseUrl: `${location.origin}${pagePath}/api`,
  interceptors: [noteLateErrors],
});
