import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { sendFile } from "./files.ts";
import { CONTENT_SECURITY_POLICY, PAGE, START_SCRIPT } from "./page.ts";

/** Where `npm run generate` puts the document. */
const DOCUMENT = fileURLToPath(new URL("../../../docs/openapi.json", import.meta.url));

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
