import { readFile } from "node:fs/promises";
import type { FastifyBaseLogger } from "fastify";
import type { ApiContext } from "./api/handler.ts";
import { implement } from "./api/implementations.ts";
import { adminTokens } from "./auth/admin-token.ts";
import { type Authenticate, createGuard, type Guard } from "./auth/guard.ts";
import { oidcTokens } from "./auth/oidc.ts";
import type { Config, OidcConfig } from "./config.ts";
import { classify } from "./credential/kinds.ts";
import type { Foundation } from "./foundation.ts";
import type { Clock } from "./lib/clock.ts";
import { createTouchKeys } from "./postgres/touch-keys.ts";
import { createSigning, type Signing } from "./signing/signing.ts";
import type { Checks } from "./transport/health.ts";
import { createServer, type ServerOptions } from "./transport/server.ts";
import type { VerifyContext } from "./verify/context.ts";
import { createLastUsed, type LastUsed } from "./verify/last-used.ts";
import { verify, verifyAll } from "./verify/verify.ts";

/** A running server. */
export interface Service {
  /** Where it listens, such as `http://127.0.0.1:4420`. */
  readonly url: string;
  /** Stops accepting, finishes what is under way, and lets go of the database. */
  close(): Promise<void>;
}

/** Milliseconds. */
const LAST_USED_INTERVAL = 5_000;
const SIGNING_KEYS_INTERVAL = 30_000;

/** What the configuration does not say. */
export type ServeOptions = Pick<ServerOptions, "workers" | "lingerTimeout">;

/** Serves what the configuration asks for on an open foundation, which goes with it. Nothing is left open if it throws. */
export async function serve(
  config: Config,
  foundation: Foundation,
  logger: FastifyBaseLogger,
  options: ServeOptions,
): Promise<Service> {
  try {
    return await listen(config, foundation, logger, options);
  } catch (error) {
    await foundation.close();
    throw error;
  }
}

async function listen(
  config: Config,
  foundation: Foundation,
  logger: FastifyBaseLogger,
  options: ServeOptions,
): Promise<Service> {
  const onUnusable = (kid: string) =>
    logger.warn({ kid }, "a retired signing key does not unwrap: its tokens are refused");
  const onLost = () => foundation.reader.clear();
  await foundation.coherence.membership.join();
  const signing = await createSigning({ ...foundation.signing, onUnusable, onLost });
  const lastUsed = createLastUsed(createTouchKeys(foundation.database), foundation.keys.clock);
  const api = createApi(config, foundation, signing, lastUsed, logger);
  const fastify = await createServer({
    implementations: implement(api),
    guard: await configuredGuard(config, foundation, api),
    checkReadiness: () => checkReadiness(foundation, signing),
    logger,
    certificate: config.tls === null ? undefined : await readCertificate(config.tls),
    corsOrigins: config.corsOrigins,
    loopbackNamesOnly: config.auth.length === 0,
    ...options,
  });
  const stopWork = startBackgroundWork(foundation, signing, lastUsed, logger);
  const close = async () => {
    const leaving = foundation.coherence.membership.leave();
    await fastify.close();
    await leaving;
    await stopWork();
    await foundation.close();
  };
  try {
    const listenTextResolver = () => "the port is open";
    const address = await fastify.listen({ host: config.host, port: config.port, listenTextResolver });
    // Fastify does not know that the port speaks TLS.
    const url = config.tls === null ? address : address.replace(/^http:/, "https:");
    return { url, close };
  } catch (error) {
    await stopWork();
    throw error;
  }
}

/** What the RPCs work with, made of what is open. */
export function createApi(
  config: Config,
  { keys, reader, rings, shapes }: Foundation,
  signing: Signing,
  lastUsed: LastUsed,
  logger: Pick<FastifyBaseLogger, "error">,
): ApiContext {
  const { clock, random } = keys;
  const { issuer } = config;
  const context: VerifyContext = {
    findKey: reader.findKey,
    recognitions: reader.recognitions,
    clock,
    shapes,
    issuer,
    rings,
    publicKey: signing.publicKey,
    onValid: lastUsed.note,
    onFault: (error) => logger.error({ err: error }, "a verdict could not be reached"),
  };
  return {
    keys,
    derive: { clock, random, issuer, macaroonRoot: rings.macaroonRoot, signer: signing.signer },
    issuer,
    verify: (credential, mode) => verify(context, credential, mode),
    verifyAll: (credentials, mode) => verifyAll(context, credentials, mode),
    jwks: signing.jwks,
  };
}

async function configuredGuard({ auth, oidc }: Config, { keys, shapes }: Foundation, api: ApiContext): Promise<Guard> {
  const isAdminToken = (credential: string) => classify(credential, shapes).type === "ISSUED_API_KEY";
  const authenticators: Authenticate[] = [];
  for (const method of auth) {
    if (method === "admin-token") authenticators.push(adminTokens(isAdminToken, api.verify));
    if (method === "oidc" && oidc !== null) authenticators.push(await oidcAuthenticator(oidc, keys.clock));
  }
  return createGuard({ authenticators, allowUnauthenticated: auth.length === 0 || auth.includes("none") });
}

/** Loaded where it is asked for: it is a tenth of what the server else has in memory. */
async function oidcAuthenticator(oidc: OidcConfig, clock: Clock): Promise<Authenticate> {
  const { createOidcVerifier } = await import("./token/oidc/verifier.ts");
  return oidcTokens(createOidcVerifier({ ...oidc, clock }));
}

/** A lease is as good as an answer of the database, and cannot be kept waiting by a busy one. */
async function checkReadiness({ coherence }: Foundation, signing: Signing): Promise<Checks> {
  return { database: coherence.isTold(), signing_keys: signing.hasActive };
}

async function readCertificate({ certFile, keyFile }: NonNullable<Config["tls"]>) {
  const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
  return { cert, key };
}

/** Signing keys are read again when the database says so, and now and then in case it could not. */
function startBackgroundWork(
  { coherence }: Foundation,
  signing: Signing,
  lastUsed: LastUsed,
  logger: FastifyBaseLogger,
) {
  const logged = (what: string, work: () => Promise<void>) => () =>
    void work().catch((err) => logger.warn({ err }, what));
  const reload = logged("signing keys could not be read again", signing.reload);
  const flush = logged("last used times could not be written", lastUsed.flush);
  coherence.onSigningKeys(reload);
  const timers = [setInterval(reload, SIGNING_KEYS_INTERVAL), setInterval(flush, LAST_USED_INTERVAL)];
  return async () => {
    for (const timer of timers) clearInterval(timer);
    await lastUsed.flush().catch((err) => logger.warn({ err }, "last used times could not be written"));
  };
}
