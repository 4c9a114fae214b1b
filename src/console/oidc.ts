import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { LoginAttempt, OidcClient } from "./oidc-client.ts";
import { returnPath } from "./return-path.ts";
import type { SealedCookie, SealedCookieOptions } from "./sealed-cookie.ts";
import type { Session } from "./session.ts";
import { SignInError, type SignInErrorCode } from "./sign-in-error.ts";

/** A sign-in that has begun in this browser. */
export interface Login extends LoginAttempt {
  /** The path of the page to return to. */
  readonly returnPath: string;
}

/** The issuer returns the person by a navigation from another site, with which browsers send no cookie that is `Strict`. */
export const LOGIN_COOKIE: SealedCookieOptions = { name: "keyhold-login", sameSite: "Lax", lifetime: 600_000 };

export interface OidcSignIn {
  readonly client: OidcClient;
  readonly login: SealedCookie<Login>;
  /** Returns the origin at which browsers reach a host of this server, as the issuer knows it; undefined if unknown. */
  originOf(host: string): string | undefined;
  /** Limits requests without a credential. Throws `RATE_LIMITED`. */
  admit(reply: FastifyReply): void;
}

/** Registers the way to the issuer and back. */
export function registerOidc(
  fastify: FastifyInstance,
  { client, login, originOf, admit }: OidcSignIn,
  session: SealedCookie<Session>,
): void {
  fastify.get("/console/oidc/login", async (request, reply) => {
    admit(reply);
    return orFailed(request, reply, async () => {
      const origin = originOf(request.host);
      if (origin === undefined) throw new SignInError("unknown_address", { reason: "KEYHOLD_CONSOLE_URL is not set" });
      const { url, attempt } = await client.begin(`${origin}/console/oidc/callback`);
      const cookie = await login.seal({ ...attempt, returnPath: returnPath(parametersOf(request).get("return")) });
      return redirect(reply.header("set-cookie", cookie), url);
    });
  });
  fastify.get("/console/oidc/callback", async (request, reply) => {
    admit(reply);
    return orFailed(request, reply, async () => {
      const response = parametersOf(request);
      // Login CSRF: a response that this browser has not asked for has no effect, not even on a sign-in that has begun meanwhile.
      const begun = await login.open(request.headers);
      if (begun === undefined) throw new SignInError("expired", { reason: "no sign-in has begun in this browser" });
      if (response.get("state") !== begun.state)
        throw new SignInError("mismatch", { reason: "the response is not for this sign-in" });
      reply.header("set-cookie", login.removal);
      const { accessToken: credential, idToken } = await client.finish(response, begun);
      const cookie =
        (await session.seal({ credential, oidc: { idToken } })) ?? (await session.seal({ credential, oidc: {} }));
      if (cookie === undefined)
        throw new SignInError("token_too_long", { reason: "the access token is too long for a cookie" });
      return redirect(reply.header("set-cookie", cookie), begun.returnPath);
    });
  });
}

/** Returns the URL at which the person signs out of the issuer; undefined if there is none, or the issuer is unreachable. */
export async function logoutUrl(
  { client, originOf }: OidcSignIn,
  request: FastifyRequest,
  idToken: string | undefined,
): Promise<string | undefined> {
  const origin = originOf(request.host);
  if (origin === undefined) return undefined;
  try {
    return await client.logoutUrl(idToken, `${origin}/console`);
  } catch (error) {
    logFailure(request, error);
    return undefined;
  }
}

/** Sends the person to the page for signing in, with the code of an error, if `work` rejects. */
async function orFailed(
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await work();
  } catch (error) {
    const { code } = logFailure(request, error);
    return redirect(reply, `/console?signin_error=${code}`);
  }
}

/** Failures that any client can cause, without a fault of the configuration or the issuer. */
const BY_CLIENTS: readonly SignInErrorCode[] = ["expired", "mismatch", "denied"];

/** Rethrows other errors. */
function logFailure({ id, log }: FastifyRequest, error: unknown): SignInError {
  if (!(error instanceof SignInError)) throw error;
  const { code, details, cause } = error;
  const level = BY_CLIENTS.includes(code) ? "info" : "warn";
  log[level](
    { reqId: id, signin_error: code, ...details, ...(cause !== undefined && { err: cause }) },
    "a sign-in by OpenID Connect failed",
  );
  return error;
}

function redirect(reply: FastifyReply, location: string): FastifyReply {
  return reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" }).redirect(location, 302);
}

function parametersOf({ url }: FastifyRequest): URLSearchParams {
  const start = url.indexOf("?");
  return new URLSearchParams(start === -1 ? "" : url.slice(start));
}
