import type { FastifyBaseLogger, FastifyReply } from "fastify";
import type { Guard, GuardedRpc } from "../auth/guard.ts";
import { createConsole, type RegisterConsole } from "../console/console.ts";
import { findConsoleFiles } from "../console/files.ts";
import { LOGIN_COOKIE, type Login, type OidcSignIn } from "../console/oidc.ts";
import { SealedCookie } from "../console/sealed-cookie.ts";
import { SESSION_COOKIE, type Session } from "../console/session.ts";
import { isLoopbackHost } from "../lib/host-names.ts";
import { RestCall } from "../transport/wire/fastify-call.ts";
import type { Config } from "./config/config.ts";
import type { Resources } from "./resources.ts";

/** Returns the console; undefined if it is off, or not built. */
export async function configuredConsole(
  config: Config,
  resources: Resources,
  guard: Guard,
  logger: FastifyBaseLogger,
): Promise<RegisterConsole | undefined> {
  if (!config.hasConsole) return undefined;
  const files = await findConsoleFiles();
  if (files === null) {
    logger.warn("the console is not served, because it is not built: run npm run build --workspace=console");
    return undefined;
  }
  const { rings, keys } = resources;
  const oidc = await configuredOidc(config, resources, guard);
  return createConsole({
    files,
    session: new SealedCookie<Session>(SESSION_COOKIE, rings.consoleSession, keys.clock),
    settings: {
      secretPrefix: config.secretPrefix,
      oidcIssuer: oidc === undefined || config.oidc === null ? null : new URL(config.oidc.issuer).host,
      acceptsAdminTokens: config.auth.includes("admin-token"),
    },
    oidc,
  });
}

/** For the log and the limit on calls without a credential. */
const SIGN_IN: GuardedRpc = { name: "console/oidc", method: { name: "oidc" }, policy: "public" };

async function configuredOidc(
  { consoleOidc, oidc, tls }: Config,
  { rings, keys }: Resources,
  guard: Guard,
): Promise<OidcSignIn | undefined> {
  if (consoleOidc === null || oidc === null) return undefined;
  // Loaded only when configured, like the verifier of access tokens.
  const { OidcClient } = await import("../console/oidc-client.ts");
  const { issuer, audience } = oidc;
  const scheme = tls === null ? "http" : "https";
  return {
    client: new OidcClient({ issuer, audience, ...consoleOidc }),
    login: new SealedCookie<Login>(LOGIN_COOKIE, rings.consoleSession, keys.clock),
    // A client chooses the Host; that of a loopback address can mislead nobody but itself.
    originOf: (host) => consoleOidc.origin ?? (isLoopbackHost(host) ? `${scheme}://${host}` : undefined),
    admit: (reply: FastifyReply) => void guard(SIGN_IN, new RestCall(reply)),
  };
}
