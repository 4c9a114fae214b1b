import type { FastifyInstance } from "fastify";
import { invalidArgument } from "../domain/errors.ts";
import { type ConsoleFiles, registerAssets, registerPage } from "./files.ts";
import { logoutUrl, type OidcSignIn, registerOidc } from "./oidc.ts";
import type { SealedCookie } from "./sealed-cookie.ts";
import type { Session } from "./session.ts";
import { bearerOf, registerSessionApi, requireSameOrigin, type ServeApi } from "./session-api.ts";

export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  readonly session: SealedCookie<Session>;
  readonly settings: PageSettings;
  /** Sign-in by OpenID Connect; without it its paths are unknown. */
  readonly oidc?: OidcSignIn | undefined;
}

/** What the page knows of the server before a person has signed in. */
export interface PageSettings {
  /** The prefix of issued secrets, by which the page finds keys by their last characters. */
  readonly secretPrefix: string;
  /** The host of the issuer at which people sign in by OpenID Connect; null: they cannot. */
  readonly oidcIssuer: string | null;
  readonly acceptsAdminTokens: boolean;
}

/**
 * Registers the console: its files, the session of a person, and the API with that session as its caller. The server is the confidential part
 * of the page: the credential is in a cookie that scripts cannot read, and each call is authorized like one with the credential itself.
 */
export async function registerConsole(
  fastify: FastifyInstance,
  { files, session, settings, oidc }: ConsoleOptions,
  serveApi: ServeApi,
): Promise<void> {
  const values = {
    PREFIX: settings.secretPrefix,
    OIDC_ISSUER: settings.oidcIssuer ?? "",
    ADMIN_TOKENS: String(settings.acceptsAdminTokens),
  };
  // Each page of the console is the same document, which shows the page that the path names.
  registerPage(fastify, ["/console", "/console/*"], { page: files.page, values, frameAncestors: [] });
  registerAssets(fastify, "/console", files);
  // What is not a page is not answered with one.
  for (const path of ["assets", "assets/*", "api", "api/*", "session", "oidc/*"])
    fastify.get(`/console/${path}`, async (_request, reply) => reply.callNotFound());
  if (oidc !== undefined) registerOidc(fastify, oidc, session);
  fastify.post("/console/session", async (request, reply) => {
    requireSameOrigin(request);
    const cookie = await session.seal({ credential: bearerOf(request) });
    if (cookie === undefined) throw invalidArgument("authorization", "is too long for a cookie", "STRING_TOO_LONG");
    return reply.code(204).headers({ "set-cookie": cookie, "cache-control": "no-store" }).send();
  });
  fastify.delete("/console/session", async (request, reply) => {
    requireSameOrigin(request);
    const ended = await session.open(request.headers);
    const url = oidc && ended?.oidc && (await logoutUrl(oidc, request, ended.oidc.idToken));
    reply.headers({ "set-cookie": session.removal, "cache-control": "no-store" });
    return url === undefined ? reply.code(204).send() : reply.send({ logout_url: url });
  });
  const authorizationOf = async (headers: Parameters<typeof session.open>[0]) => {
    const current = await session.open(headers);
    return current && `Bearer ${current.credential}`;
  };
  await registerSessionApi(fastify, "/console/api", authorizationOf, serveApi);
}
