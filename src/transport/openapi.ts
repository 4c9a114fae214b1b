import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isKnown } from "./rest/response.ts";

/** The document written by `npm run generate`. */
const DOCUMENT = fileURLToPath(new URL("../../docs/openapi.json", import.meta.url));

/** Files of the viewer that the page loads. */
const ASSETS = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"];

/** Seconds for which a browser may cache them. It revalidates the document each time. */
const ASSET_MAX_AGE = 3_600;

/**
 * Serves the OpenAPI document at /openapi.json and a viewer at /docs to everyone: they describe a public interface. Files are read on
 * first use.
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

/** Returns the folder of Swagger UI in the package that Fastify maintains for its plugin. */
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

/** Cached in memory. A stream per request would hold a file descriptor for a client that does not read, and 2 MB serve all. */
const files = new Map<string, Promise<File>>();

/** Sends a file with its type and ETag, or 304 if the client has it. `maxAge` in seconds. */
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
 * The page at /docs. Its links are relative, so that it works behind a proxy under another path. It loads nothing from elsewhere and has
 * no inline script, so that its policy (CSP) can be strict.
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

/** Starts the viewer. Without a validator it does not send the document anywhere. */
export const START_SCRIPT = `SwaggerUIBundle({
  url: new URL("../openapi.json", document.currentScript.src).href,
  dom_id: "#swagger-ui",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
});
`;

/** Everything from this server, calls included; images also as data URLs, which the stylesheet contains. */
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
