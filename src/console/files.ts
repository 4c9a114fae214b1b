import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isUnchanged, StaticFile } from "../lib/static-file.ts";

/** The built files of the console, by their path below /console. */
export interface ConsoleFiles {
  readonly page: StaticFile;
  readonly icon: StaticFile;
  readonly assets: ReadonlyMap<string, Asset>;
}

interface Asset {
  readonly file: StaticFile;
  /** The same in Brotli (RFC 7932). */
  readonly compressed: StaticFile | undefined;
  readonly type: string;
}

/** What the page knows of the server before a person has signed in. */
export interface PageSettings {
  /** The prefix of issued secrets, by which the page finds keys by their last characters. */
  readonly secretPrefix: string;
  /** The host of the issuer at which people sign in by OpenID Connect; null: they cannot. */
  readonly oidcIssuer: string | null;
  readonly acceptsAdminTokens: boolean;
}

/** Where `npm ci` builds the console, and the packages have it. */
const FOLDER = new URL("../../console/dist/", import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** Finds the built files; null if the console is not built. */
export async function findConsoleFiles(folder = FOLDER): Promise<ConsoleFiles | null> {
  const assetsFolder = new URL("assets/", folder);
  const names = await readdir(assetsFolder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (names === null) return null;
  const fileOf = (name: string) => new StaticFile(new URL(name, assetsFolder));
  const assets = names.flatMap((name): [string, Asset][] => {
    const type = TYPES[name.split(".").at(-1) ?? ""];
    const compressed = names.includes(`${name}.br`) ? fileOf(`${name}.br`) : undefined;
    return type === undefined ? [] : [[name, { file: fileOf(name), compressed, type }]];
  });
  return {
    page: new StaticFile(new URL("index.html", folder)),
    icon: new StaticFile(new URL("icon.svg", folder)),
    assets: new Map(assets),
  };
}

/** Serves the files to everyone: they contain nothing of the server's data. */
export function registerFiles(
  fastify: FastifyInstance,
  { page, icon, assets }: ConsoleFiles,
  { secretPrefix, oidcIssuer, acceptsAdminTokens }: PageSettings,
): void {
  const values: Readonly<Record<string, string>> = {
    __PREFIX__: secretPrefix,
    __OIDC_ISSUER__: escapeAttribute(oidcIssuer ?? ""),
    __ADMIN_TOKENS__: String(acceptsAdminTokens),
  };
  /** Each page of the console is the same document, which shows the page that the path names. */
  const servePage = async (_request: FastifyRequest, reply: FastifyReply) => {
    const { bytes } = await page.read();
    const nonce = randomBytes(16).toString("base64");
    const html = bytes.toString("utf8").replaceAll(PLACEHOLDER, (name) => values[name] ?? nonce);
    return reply
      .headers({
        ...SECURITY_FIELDS,
        "content-security-policy": contentSecurityPolicy(nonce),
        "cache-control": "no-store",
      })
      .type("text/html; charset=utf-8")
      .send(html);
  };
  fastify.get("/console", servePage);
  fastify.get("/console/*", servePage);
  // What is not a page is not answered with one.
  for (const path of ["assets", "assets/*", "api", "api/*", "session"])
    fastify.get(`/console/${path}`, async (_request, reply) => reply.callNotFound());
  fastify.get("/console/icon.svg", async ({ method, headers }, reply) => {
    const { bytes, etag } = await icon.read();
    reply.headers({ ...SECURITY_FIELDS, etag, "cache-control": "public, max-age=3600" });
    if (isUnchanged(method, etag, headers["if-none-match"])) return reply.code(304).send();
    return reply.type("image/svg+xml").send(bytes);
  });
  fastify.get<{ Params: { name: string } }>("/console/assets/:name", async ({ headers, params }, reply) => {
    const asset = assets.get(params.name);
    if (asset === undefined) return reply.callNotFound();
    const { file, compressed, type } = asset;
    const acceptsBrotli = compressed !== undefined && BROTLI.test(headers["accept-encoding"] ?? "");
    const { bytes } = await (acceptsBrotli ? compressed : file).read();
    if (acceptsBrotli) reply.header("content-encoding", "br");
    return reply
      .headers({ ...SECURITY_FIELDS, vary: "accept-encoding", "cache-control": IMMUTABLE })
      .type(type)
      .send(bytes);
  });
}

const PLACEHOLDER = /__(?:NONCE|PREFIX|OIDC_ISSUER|ADMIN_TOKENS)__/g;

/** Hosts of URLs may contain quotes (WHATWG URL §3.2). */
function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
}

/** `br` in Accept-Encoding (RFC 9110 §12.5.3), unless its weight is 0. */
const BROTLI = /(?:^|,)[ \t]*br[ \t]*(?:;[ \t]*q=(?:1|0\.0*[1-9])[^,]*)?(?:,|$)/i;

/** The names of assets contain a hash of their content. */
const IMMUTABLE = "public, max-age=31536000, immutable";

const SECURITY_FIELDS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/**
 * Everything from this server, and no markup from scripts (Trusted Types). Style elements of the components have the nonce of the response;
 * their attributes are set by script, which the policy does not concern.
 */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types default",
  ].join("; ");
}
