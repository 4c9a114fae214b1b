import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isUnchanged, StaticFile } from "../../lib/static-file.ts";

/** The files of the viewer, with their types. Fastify maintains the package of its assets for its own plugin. */
const VIEWER = [
  ["color-scheme.js", "../../../src/transport/services/viewer/color-scheme.js", "text/javascript; charset=utf-8"],
  ["icon.svg", "../../../src/transport/services/viewer/icon.svg", "image/svg+xml"],
  ["start.js", "../../../src/transport/services/viewer/start.js", "text/javascript; charset=utf-8"],
  ["style.css", "../../../src/transport/services/viewer/style.css", "text/css; charset=utf-8"],
  ["swagger-ui.css", "@fastify/swagger-ui/static/swagger-ui.css", "text/css; charset=utf-8"],
  ["swagger-ui-bundle.js", "@fastify/swagger-ui/static/swagger-ui-bundle.js", "application/javascript; charset=utf-8"],
] as const;

/** Seconds for which a browser may cache them. It revalidates the document and the page each time. */
const ASSET_MAX_AGE = 3_600;

/** The pages of docs/ to which descriptions in the document link. */
const PAGES = [
  "admin-authentication",
  "audit",
  "concepts",
  "introspection",
  "key-page",
  "limits",
  "operating",
  "webhooks",
];

/**
 * Serves the OpenAPI document at /openapi.json and a viewer at /docs, to everyone: they describe a public interface. / leads to the viewer,
 * and browsers to the console if there is one.
 */
export function registerOpenApi(fastify: FastifyInstance, hasConsole: boolean): void {
  // Written by `npm run generate`.
  fastify.get("/openapi.json", serveFile("../../../docs/openapi.json", "application/json; charset=utf-8", 0));
  const fillIn = (page: string) => page.replace("__CONSOLE__", hasConsole ? "" : "hidden");
  const servePage = serveFile(
    "../../../src/transport/services/viewer/page.html",
    "text/html; charset=utf-8",
    0,
    fillIn,
  );
  fastify.get("/docs", (request, reply) =>
    servePage(request, reply.header("content-security-policy", CONTENT_SECURITY_POLICY)),
  );
  fastify.get("/", async ({ headers: { accept } }, reply) =>
    reply.header("vary", "accept").redirect(hasConsole && accept?.includes("text/html") === true ? "console" : "docs"),
  );
  fastify.get("/docs/", async (_request, reply) => reply.redirect("../docs"));
  for (const [name, module, type] of VIEWER) fastify.get(`/docs/${name}`, serveFile(module, type, ASSET_MAX_AGE));
  for (const page of PAGES) {
    fastify.get(`/docs/${page}.md`, serveFile(`../../../docs/${page}.md`, "text/plain; charset=utf-8", ASSET_MAX_AGE));
  }
}

/** Serves a file with its ETag, or 304 if the client has it. `module` is resolved like an import; `maxAge` is in seconds. */
function serveFile(module: string, type: string, maxAge: number, edit?: (text: string) => string) {
  const file = new StaticFile(new URL(import.meta.resolve(module)), edit);
  return async ({ method, headers }: FastifyRequest, reply: FastifyReply) => {
    const { bytes, etag } = await file.read();
    reply.headers({ etag, "cache-control": `public, max-age=${maxAge}`, "x-content-type-options": "nosniff" });
    if (isUnchanged(method, etag, headers["if-none-match"])) return reply.code(304).send();
    return reply.type(type).send(bytes);
  };
}

/** Everything from this server, calls included; images also as data URLs, which the stylesheet contains. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
