import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import {
  KEY_PAGE_PATH,
  type KeyPageSession,
  type KeyPageStore,
  keyPageAuthorization,
  type OpenKeyPageSession,
} from "../keys/key-page.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { StaticFile } from "../lib/static-file.ts";
import type { Sealer } from "../token/sealer.ts";
import { type ConsoleFiles, registerAssets, registerPage, serveImage } from "./files.ts";
import type { SealedCookie } from "./sealed-cookie.ts";
import { bearerOf, registerSessionApi, requireSameOrigin, type ServeApi } from "./session-api.ts";

/** How the page looks. */
export interface Branding {
  /** Empty: the name in the language of the reader. */
  readonly name: string;
  readonly logo: { readonly file: StaticFile; readonly type: string } | null;
  /** `#rrggbb`; empty: the colour of the console. */
  readonly color: string;
}

export interface KeyPageOptions {
  readonly files: ConsoleFiles;
  readonly branding: Branding;
  /** Origins whose pages may frame it. */
  readonly frameAncestors: readonly string[];
  readonly links: Pick<Sealer<KeyPageSession>, "open">;
  readonly sessions: Sealer<OpenKeyPageSession>;
  readonly cookie: SealedCookie<OpenKeyPageSession>;
  readonly store: Pick<KeyPageStore, "open">;
  /** Limits requests without a credential. Throws `RATE_LIMITED`. */
  admit(reply: FastifyReply): void;
  /** Authenticates the session in the header `Authorization` of the request. Throws or rejects if it is not accepted. */
  principalOf(reply: FastifyReply): MaybePromise<Principal>;
}

/** Registers the page for the owners of keys: its files, its sessions, and the API with such a session as its caller. */
export async function registerKeyPage(
  fastify: FastifyInstance,
  { files, branding, frameAncestors, links, sessions, cookie, store, admit, principalOf }: KeyPageOptions,
  serveApi: ServeApi,
): Promise<void> {
  const { name, logo, color } = branding;
  const logoPath = `${KEY_PAGE_PATH}/logo`;
  const values = { BRAND_NAME: name, BRAND_LOGO: logo === null ? "" : logoPath, BRAND_COLOR: color };
  registerPage(fastify, [KEY_PAGE_PATH], { page: files.keyPage, values, frameAncestors });
  registerAssets(fastify, KEY_PAGE_PATH, files);
  if (logo !== null) serveImage(fastify, logoPath, logo.file, logo.type);
  fastify.post(`${KEY_PAGE_PATH}/session`, async (request, reply) => {
    requireSameOrigin(request);
    admit(reply);
    const session = await links.open(bearerOf(request));
    if (session === undefined) throw invalidLink();
    const expireTime = Math.min(sessions.expireTime.getTime(), session.creator.expireTime ?? Number.POSITIVE_INFINITY);
    const sealed = await sessions.seal({ ...session, expireTime });
    // A session whose creator is not accepted any more is not opened either.
    authorize(request, sealed);
    if (!(await store.open(session.id, await principalOf(reply)))) throw invalidLink();
    // `createKeyPageSession` bounds the size.
    return reply
      .code(204)
      .headers({ "set-cookie": cookie.set(sealed), "cache-control": "no-store" })
      .send();
  });
  fastify.delete(`${KEY_PAGE_PATH}/session`, async (request, reply) => {
    requireSameOrigin(request);
    return reply.code(204).headers({ "set-cookie": cookie.removal, "cache-control": "no-store" }).send();
  });
  const authorizationOf = async (headers: FastifyRequest["headers"]) => {
    const sealed = cookie.find(headers);
    return sealed && keyPageAuthorization(sealed);
  };
  await registerSessionApi(fastify, `${KEY_PAGE_PATH}/api`, authorizationOf, serveApi);
}

function authorize({ headers }: FastifyRequest, sealed: string): void {
  headers.authorization = keyPageAuthorization(sealed);
}

function invalidLink(): KeyholdError {
  return new KeyholdError("CALLER_UNAUTHENTICATED", "the link was used already, or has expired; request another one");
}
