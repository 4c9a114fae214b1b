import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ReadTree, TreeResource } from "../../api/audit-tiles.ts";
import type { Guard } from "../../auth/guard.ts";
import type { Tracing } from "../../observability/tracing.ts";
import { createPipeline } from "../pipeline/call-pipeline.ts";
import type { ConcurrencyLimiter } from "../pipeline/concurrency-limiter.ts";
import type { RestCall } from "../wire/fastify-call.ts";
import { HttpError } from "../wire/http-error.ts";
import { restHandler } from "../wire/json-response.ts";

export const AUDIT_TILES = "keyhold.v2alpha1.AuditTiles/GetAuditTile";

const PREFIX = "/v2alpha1/audit/";

export type AuditTilesPipeline = ReturnType<typeof createAuditTiles>;

/** Decorates the handler of the audit log's tree with authorization, load shedding and the error table. */
export function createAuditTiles(
  read: ReadTree,
  guard: Guard,
  limiter: ConcurrencyLimiter,
  tracing: Tracing | undefined,
) {
  const endpoint = {
    name: AUDIT_TILES,
    method: { name: "GetAuditTile" },
    policy: "keyhold:audit",
    handler: read,
  } as const;
  return createPipeline(endpoint, guard, limiter, tracing);
}

/** Serves the tree in the form of C2SP tlog-tiles. */
export function registerAuditTiles(fastify: FastifyInstance, pipeline: AuditTilesPipeline): void {
  const answer = async (call: RestCall, { url }: FastifyRequest): Promise<TreeResource> => {
    const principal = await pipeline.admit(call);
    const [path = ""] = url.slice(PREFIX.length).split("?");
    const resource = await pipeline.invoke(path, principal, call);
    if (resource === null) throw new HttpError("PATH_NOT_FOUND");
    return resource;
  };
  fastify.get(`${PREFIX}*`, restHandler(answer, send));
}

/** Only the caller may cache, because others may not read it. */
function send(_request: FastifyRequest, reply: FastifyReply, { content, isImmutable }: TreeResource): FastifyReply {
  if (!isImmutable) return reply.header("cache-control", "no-store").type("text/plain; charset=utf-8").send(content);
  reply.header("cache-control", "private, max-age=31536000, immutable");
  return reply.type("application/octet-stream").send(content);
}
