import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isUnchanged, StaticFile } from "../lib/static-file.ts";

/** The built files of the console, by their path below /console. */
export interface ConsoleFiles {
  readonly page: StaticFile;
  /** The page for the owners of keys. */
  readonly keyPage: StaticFile;
  readonly icon: StaticFile;
  readonly assets: ReadonlyMap<string, Asset>;
}

interface Asset {
  readonly file: StaticFile;
  /** The same in Brotli (RFC 7932). */
  readonly compressed: StaticFile | undefined;
  readonly type: string;
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
    keyPage: new StaticFile(new URL("keys.html", folder)),
    icon: new StaticFile(new URL("icon.svg", folder)),
    assets: new Map(assets),
  };
}

export interface Page {
  readonly page: StaticFile;
  /** What the server fills in, by the names of the placeholders `__NAME__`. */
  readonly values: Readonly<Record<string, string>>;
  /** Origins whose pages may frame it. */
  readonly frameAncestors: readonly string[];
}

/** Serves a page to everyone, under each path: it contains nothing of the server's data. */
export function registerPage(
  fastify: FastifyInstance,
  paths: readonly string[],
  { page, values, frameAncestors }: Page,
): void {
  const servePage = async (_request: FastifyRequest, reply: FastifyReply) => {
    const { bytes } = await page.read();
    const nonce = randomBytes(16).toString("base64");
    const filled: Readonly<Record<string, string>> = { ...values, NONCE: nonce };
    const html = bytes
      .toString("utf8")
      .replaceAll(PLACEHOLDER, (whole, name: string) => escapeAttribute(filled[name] ?? whole));
    return reply
      .headers({
        ...SECURITY_FIELDS,
        "content-security-policy": contentSecurityPolicy(nonce, frameAncestors),
        "cache-control": "no-store",
      })
      .type("text/html; charset=utf-8")
      .send(html);
  };
  for (const path of paths) fastify.get(path, servePage);
}

const PLACEHOLDER = /__([A-Z]+(?:_[A-Z]+)*)__/g;

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

/** Serves what the pages load, to everyone. */
export function registerAssets(fastify: FastifyInstance, prefix: string, { icon, assets }: ConsoleFiles): void {
  serveImage(fastify, `${prefix}/icon.svg`, icon, "image/svg+xml");
  fastify.get<{ Params: { name: string } }>(`${prefix}/assets/:name`, async ({ headers, params }, reply) => {
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

/** Serves an image. As a document, an SVG image may do nothing. */
export function serveImage(fastify: FastifyInstance, path: string, image: StaticFile, type: string): void {
  fastify.get(path, async ({ method, headers }, reply) => {
    const { bytes, etag } = await image.read();
    reply.headers({
      ...SECURITY_FIELDS,
      etag,
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      "cache-control": "public, max-age=3600",
    });
    if (isUnchanged(method, etag, headers["if-none-match"])) return reply.code(304).send();
    return reply.type(type).send(bytes);
  });
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
function contentSecurityPolicy(nonce: string, frameAncestors: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(" ")}`,
    "require-trusted-types-for 'script'",
    "trusted-types default",
  ].join("; ");
}
