import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { CallersService } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { session } from "../texts/session.ts";
import { queryClient } from "./query-client.ts";
import { requestSession } from "./session-request.ts";

/** Tabs of the same browser share the session. */
const tabs = new BroadcastChannel("keyhold-session");
tabs.onmessage = () => void endQueries();

/**
 * Begins a session with a credential, which the server then keeps in a sealed cookie. Rejects with the error of the server if the credential
 * is not accepted.
 */
export async function signIn(credential: string): Promise<void> {
  const headers = { authorization: `Bearer ${credential}` };
  await createClient(CallersService, createConnectTransport({ baseUrl: location.origin })).whoAmI({}, { headers });
  await requestSession("POST", headers);
  // The failure of an earlier attempt has no meaning any more.
  if (signInError() !== null) history.replaceState(null, "", location.pathname);
  await changed();
}

type SignInFailure = keyof (typeof session)["en"]["failures"];

/** Returns the path of the sign-in by OpenID Connect, which returns to the current page. */
export function oidcSignInPath(): string {
  const search = new URLSearchParams(location.search);
  search.delete(ERROR);
  const query = search.size === 0 ? "" : `?${search}`;
  const page = `${location.pathname.replace(/^\/console/, "") || "/"}${query}${location.hash}`;
  return `/console/oidc/login?${new URLSearchParams({ return: page })}`;
}

const ERROR = "signin_error";

/** Returns why a sign-in by OpenID Connect has failed; null if none has. */
export function signInError(): SignInFailure | null {
  const code = new URLSearchParams(location.search).get(ERROR);
  return code !== null && Object.hasOwn(session.en.failures, code) ? (code as SignInFailure) : null;
}

/** Ends the session in all tabs of this browser, and leaves for the issuer if the person has to sign out there too. */
export async function signOut(): Promise<void> {
  const response = await requestSession("DELETE");
  await changed();
  if (response.status === 200) location.assign((await response.json()).logout_url);
}

async function changed(): Promise<void> {
  tabs.postMessage(null);
  await endQueries();
}

/** Nothing that one caller has read or changed stays for the next one. */
async function endQueries(): Promise<void> {
  queryClient.getMutationCache().clear();
  await queryClient.resetQueries();
  queryClient.removeQueries({ type: "inactive" });
}
