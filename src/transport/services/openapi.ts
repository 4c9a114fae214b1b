import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isUnchanged } from "../wire/json-response.ts";

/** The files of the viewer that the page loads, with their types. Fastify maintains the package for its plugin. */
const ASSETS = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "application/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

/** Seconds for which a browser may cache them. It revalidates the document each time. */
const ASSET_MAX_AGE = 3_600;

/** The pages of docs/ to which descriptions in the document link. */
const PAGES = ["admin-authentication", "concepts", "introspection", "operating"];

/** Serves the OpenAPI document at /openapi.json and a viewer at /docs, to which / leads, to everyone: they describe a public interface. */
export function registerOpenApi(fastify: FastifyInstance): void {
  // Written by `npm run generate`.
  fastify.get("/openapi.json", serveFile("../../../docs/openapi.json", "application/json; charset=utf-8", 0));
  fastify.get("/docs", async (_request, reply) =>
    reply
      .headers({ "content-security-policy": CONTENT_SECURITY_POLICY, "cache-control": "no-cache" })
      .type("text/html; charset=utf-8")
      .send(PAGE),
  );
  fastify.get("/", async (_request, reply) => reply.redirect("docs"));
  fastify.get("/docs/", async (_request, reply) => reply.redirect("../docs"));
  fastify.get("/docs/start.js", async (_request, reply) =>
    reply.type("text/javascript; charset=utf-8").send(START_SCRIPT),
  );
  for (const [name, type] of Object.entries(ASSETS)) {
    fastify.get(`/docs/${name}`, serveFile(`@fastify/swagger-ui/static/${name}`, type, ASSET_MAX_AGE));
  }
  for (const page of PAGES) {
    fastify.get(`/docs/${page}.md`, serveFile(`../../../docs/${page}.md`, "text/plain; charset=utf-8", ASSET_MAX_AGE));
  }
}

/** Serves a file with its ETag, or 304 if the client has it. `module` is resolved like an import; `maxAge` is in seconds. */
function serveFile(module: string, type: string, maxAge: number) {
  /** In memory from the first use. A stream per request would hold a file descriptor for a client that does not read. */
  let reading: ReturnType<typeof readWhole> | undefined;
  return async ({ method, headers }: FastifyRequest, reply: FastifyReply) => {
    reading ??= readWhole(module);
    reading.catch(() => {
      reading = undefined;
    });
    const { bytes, etag } = await reading;
    reply.headers({ etag, "cache-control": `public, max-age=${maxAge}`, "x-content-type-options": "nosniff" });
    if (isUnchanged(method, etag, headers["if-none-match"])) return reply.code(304).send();
    return reply.type(type).send(bytes);
  };
}

async function readWhole(module: string) {
  const bytes = await readFile(new URL(import.meta.resolve(module)));
  return { bytes, etag: `"${hash("sha256", bytes, "base64url")}"` };
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
