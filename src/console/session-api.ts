import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { invalidArgument, KeyholdError } from "../domain/errors.ts";

/** Registers the RPCs. */
export type ServeApi = (scope: FastifyInstance) => Promise<void>;

/**
 * Registers the RPCs below `prefix` for a page that has a session. Only there the session counts; elsewhere its cookie has no effect.
 * `authorizationOf` returns the header `Authorization` of the session in a request; undefined if there is none.
 */
export async function registerSessionApi(
  fastify: FastifyInstance,
  prefix: string,
  authorizationOf: (headers: IncomingHttpHeaders) => Promise<string | undefined>,
  serveApi: ServeApi,
): Promise<void> {
  await fastify.register(
    async (scope) => {
      scope.addHook("onRequest", async (request, reply) => {
        requireSameOrigin(request);
        if (!RPC_TYPES.test(request.headers["content-type"] ?? "")) {
          throw denied("the Content-Type must be one of the Connect protocol");
        }
        const authorization = await authorizationOf(request.headers);
        // So the page can tell a session that is not accepted any more from none.
        reply.header("x-keyhold-session", authorization === undefined ? "none" : "sent");
        if (authorization === undefined) delete request.headers.authorization;
        else request.headers.authorization = authorization;
      });
      await serveApi(scope);
    },
    { prefix },
  );
}

/** Content types that a page of another origin cannot send without asking first (Fetch §4.10). */
const RPC_TYPES = /^application\/(?:connect\+)?(?:json|proto)(?=[ \t]*(?:;|$))/;

/**
 * Rejects what is not a call by the page itself: by a page of another origin or site (CSRF), or by a program, which can use the API. Browsers
 * send the field to origins that are potentially trustworthy, on which alone they store the cookie (Fetch Metadata §2.3).
 */
export function requireSameOrigin({ headers }: FastifyRequest): void {
  if (headers["sec-fetch-site"] === "same-origin") return;
  throw denied(
    "only a page of this server may call this path: it must send Sec-Fetch-Site: same-origin, which needs HTTPS or a loopback address",
  );
}

function denied(message: string): KeyholdError {
  return new KeyholdError("CALLER_NOT_PERMITTED", message);
}

/** RFC 6750 §2.1. */
const BEARER = /^bearer +([!-+\--~]+)$/i;

/** Returns the bearer credential of a request. Throws `INVALID_ARGUMENT` without one. */
export function bearerOf({ headers }: FastifyRequest): string {
  const [, credential] = BEARER.exec(headers.authorization ?? "") ?? [];
  if (credential === undefined) throw invalidArgument("authorization", "must have the form Bearer <credential>");
  return credential;
}
