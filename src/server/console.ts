import type { FastifyBaseLogger, FastifyReply } from "fastify";
import type { Guard, GuardedRpc } from "../auth/guard.ts";
import { registerConsole } from "../console/console.ts";
import { type ConsoleFiles, findConsoleFiles } from "../console/files.ts";
import { LOGIN_COOKIE, type Login, type OidcSignIn } from "../console/oidc.ts";
import { type SealedCookie, sealedCookie } from "../console/sealed-cookie.ts";
import { SESSION_COOKIE, type Session } from "../console/session.ts";
import { isLoopbackHost } from "../lib/host-names.ts";
import type { RegisterPage } from "../transport/transport.ts";
import { RestCall } from "../transport/wire/fastify-call.ts";
import type { Config } from "./config/config.ts";
import type { Resources } from "./resources.ts";

/** Returns the built files of the console and of the key page; null if neither is on, or they are not built. */
export async function configuredFiles(config: Config, logger: FastifyBaseLogger): Promise<ConsoleFiles | null> {
  if (!config.hasConsole && !config.keyPages.isOn) return null;
  const files = await findConsoleFiles();
  if (files === null) {
    const remedy = "run npm run build --workspace=console";
    logger.warn(`the console and the key page are not served, because they are not built: ${remedy}`);
  }
  return files;
}

/** Returns the console; undefined if it is off, or not built. */
export async function configuredConsole(
  config: Config,
  { rings, keys }: Resources,
  guard: Guard,
  files: ConsoleFiles | null,
): Promise<RegisterPage | undefined> {
  if (!config.hasConsole || files === null) return undefined;
  const login = sealedCookie<Login>(LOGIN_COOKIE, rings.consoleSession, keys.clock);
  const oidc = await configuredOidc(config, login, guard);
  const options = {
    files,
    session: sealedCookie<Session>(SESSION_COOKIE, rings.consoleSession, keys.clock),
    settings: {
      secretPrefix: config.secretPrefix,
      oidcIssuer: oidc === undefined || config.oidc === null ? null : new URL(config.oidc.issuer).host,
      acceptsAdminTokens: config.auth.includes("admin-token"),
    },
    oidc,
  };
  return (fastify, serveApi) => registerConsole(fastify, options, serveApi);
}

/** Returns the origin at which browsers reach a host of this server; undefined if unknown. */
export function originOf({ consoleOrigin, tls }: Config): (host: string) => string | undefined {
  const scheme = tls === null ? "http" : "https";
  // A client chooses the Host; that of a loopback address can mislead nobody but itself.
  return (host) => consoleOrigin ?? (isLoopbackHost(host) ? `${scheme}://${host}` : undefined);
}

/** For the log and the limit on calls without a credential. */
const SIGN_IN: GuardedRpc = { name: "console/oidc", method: { name: "oidc" }, policy: "public" };

async function configuredOidc(
  config: Config,
  login: SealedCookie<Login>,
  guard: Guard,
): Promise<OidcSignIn | undefined> {
  const { consoleOidc, oidc } = config;
  if (consoleOidc === null || oidc === null) return undefined;
  // Loaded only when configured, like the verifier of access tokens.
  const { OidcClient } = await import("../console/oidc-client.ts");
  const { issuer, audience } = oidc;
  return {
    client: new OidcClient({ issuer, audience, ...consoleOidc }),
    login,
    originOf: originOf(config),
    admit: (reply: FastifyReply) => void guard(SIGN_IN, new RestCall(reply)),
  };
}
