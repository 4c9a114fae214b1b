import type { FastifyInstance, FastifyRequest } from "fastify";
import { invalidArgument, KeyholdError } from "../domain/errors.ts";
import { type ConsoleFiles, type PageSettings, registerFiles } from "./files.ts";
import { logoutUrl, type OidcSignIn, registerOidc } from "./oidc.ts";
import type { SealedCookie } from "./sealed-cookie.ts";
import type { Session } from "./session.ts";

export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  readonly session: SealedCookie<Session>;
  readonly settings: PageSettings;
  /** Sign-in by OpenID Connect; without it its paths are unknown. */
  readonly oidc?: OidcSignIn | undefined;
}

/** The path under which the RPCs are served to the page. Only there a session counts; elsewhere its cookie has no effect. */
const API_PREFIX = "/console/api";

/** Registers the console. `serveApi` registers the RPCs. */
export type RegisterConsole = (
  fastify: FastifyInstance,
  serveApi: (scope: FastifyInstance) => Promise<void>,
) => Promise<void>;

/**
 * Creates the console: its files, the session of a person, and the API with that session as its caller. The server is the confidential part
 * of the page: the credential is in a cookie that scripts cannot read, and each call is authorized like one with the credential itself.
 */
export function createConsole({ files, session, settings, oidc }: ConsoleOptions): RegisterConsole {
  return async (fastify, serveApi) => {
    registerFiles(fastify, files, settings);
    // No pages of the console.
    fastify.get("/console/oidc/*", (_request, reply) => reply.callNotFound());
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
    await fastify.register(
      async (scope) => {
        scope.addHook("onRequest", async (request, reply) => {
          requireSameOrigin(request);
          if (!RPC_TYPES.test(request.headers["content-type"] ?? "")) {
            throw denied("the Content-Type must be one of the Connect protocol");
          }
          const current = await session.open(request.headers);
          // So the page can tell a session that is not accepted any more from none.
          reply.header("x-keyhold-session", current === undefined ? "none" : "sent");
          if (current === undefined) delete request.headers.authorization;
          else request.headers.authorization = `Bearer ${current.credential}`;
        });
        await serveApi(scope);
      },
      { prefix: API_PREFIX },
    );
  };
}

/** Content types that a page of another origin cannot send without asking first (Fetch §4.10). */
const RPC_TYPES = /^application\/(?:connect\+)?(?:json|proto)(?=[ \t]*(?:;|$))/;

/**
 * Rejects what is not a call by the page itself: by a page of another origin or site (CSRF), or by a program, which can use the API. Browsers
 * send the field to origins that are potentially trustworthy, on which alone they store the cookie (Fetch Metadata §2.3).
 */
function requireSameOrigin({ headers }: FastifyRequest): void {
  if (headers["sec-fetch-site"] === "same-origin") return;
  throw denied(
    "only the page of the console may call this path: it must send Sec-Fetch-Site: same-origin, which needs HTTPS or a loopback address",
  );
}

function denied(message: string): KeyholdError {
  return new KeyholdError("CALLER_NOT_PERMITTED", message);
}

/** RFC 6750 §2.1. */
const BEARER = /^bearer +([!-+\--~]+)$/i;

function bearerOf({ headers }: FastifyRequest): string {
  const [, credential] = BEARER.exec(headers.authorization ?? "") ?? [];
  if (credential === undefined) throw invalidArgument("authorization", "must have the form Bearer <credential>");
  return credential;
}
