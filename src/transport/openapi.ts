import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isKnown } from "./rest/response.ts";

/** Where `npm run generate` puts the document. */
const DOCUMENT = fileURLToPath(new URL("../../docs/openapi.json", import.meta.url));

/** What the page loads of the viewer. */
const ASSETS = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"];

/** Seconds for which a browser may keep them. It asks each time whether the document is still the same. */
const ASSET_MAX_AGE = 3_600;

/**
 * Serves the OpenAPI document at /openapi.json and a viewer of it at /docs, to everyone: they describe a public interface. Files are
 * read when they are first asked for.
 */
export function registerOpenApi(fastify: FastifyInstance): void {
  fastify.get("/openapi.json", (request, reply) => sendFile(request, reply, DOCUMENT, 0));
  fastify.get("/docs", async (_request, reply) =>
    reply
      .headers({ "content-security-policy": CONTENT_SECURITY_POLICY, "cache-control": "no-cache" })
      .type("text/html; charset=utf-8")
      .send(PAGE),
  );
  fastify.get("/docs/", async (_request, reply) => reply.redirect("../docs"));
  fastify.get("/docs/start.js", async (_request, reply) =>
    reply.type("text/javascript; charset=utf-8").send(START_SCRIPT),
  );
  for (const name of ASSETS) {
    fastify.get(`/docs/${name}`, (request, reply) =>
      sendFile(request, reply, join(assetsFolder(), name), ASSET_MAX_AGE),
    );
  }
}

/** The files of Swagger UI, as the package has them that Fastify keeps for its own plugin. */
function assetsFolder(): string {
  return dirname(fileURLToPath(import.meta.resolve("@fastify/swagger-ui/static/swagger-ui.css")));
}

interface File {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly type: string;
}

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "application/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".png": "image/png",
};

/**
 * Kept once read. A stream of its own for each request would be a file descriptor that a client holds by not reading, and 2 MB are the
 * same for all.
 */
const files = new Map<string, Promise<File>>();

/** Sends a file of the installation with its type and its ETag, or 304 where the caller has it. `maxAge` in seconds. */
async function sendFile(request: FastifyRequest, reply: FastifyReply, path: string, maxAge: number) {
  const reading = files.get(path) ?? readWhole(path);
  files.set(path, reading);
  reading.catch(() => files.delete(path));
  const { bytes, etag, type } = await reading;
  reply.headers({ etag, "cache-control": `public, max-age=${maxAge}`, "x-content-type-options": "nosniff" });
  if (isKnown(request.method, etag, request.headers["if-none-match"])) return reply.code(304).send();
  return reply.type(type).send(bytes);
}

async function readWhole(path: string): Promise<File> {
  const bytes = await readFile(path);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url")}"`;
  return { bytes, etag, type: TYPES[extname(path)] ?? "application/octet-stream" };
}

/**
 * The page at /docs. Its links are relative, so that it also works behind a proxy that puts it under another path. It loads nothing
 * from elsewhere, and has no script of its own in it, so that its policy (CSP) can be strict.
 */
export const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Keyhold API</title>
    <link rel="icon" href="docs/favicon-32x32.png">
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <noscript>This page needs JavaScript. The document that it shows is <a href="openapi.json">openapi.json</a>.</noscript>
    <div id="swagger-ui"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

/** Starts the viewer. Without a validator it sends nobody the document. */
export const START_SCRIPT = `SwaggerUIBundle({
  url: new URL("../openapi.json", document.currentScript.src).href,
  dom_id: "#swagger-ui",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
});
`;

/** Everything from this server, calls included; pictures also as data, which the stylesheet has. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
