import { setTimeout as sleep } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../../gen/health/v1/health_pb.js";
import type { Implementation } from "../../api/row.ts";
import type { StreamingRpc } from "../connect/streams.ts";

/** The dependencies of the service by name, and whether each works. */
export type Checks = Readonly<Record<string, boolean>>;

export type CheckReadiness = () => Promise<Checks>;

/** The number of processes that serve the port, and the configured number. */
export type CountWorkers = () => { readonly running: number; readonly configured: number };

export function registerHealth(fastify: FastifyInstance, checkReadiness: CheckReadiness, workers?: CountWorkers): void {
  fastify.get("/health/alive", async (_request, reply) =>
    reply.header("cache-control", "no-store").send({ status: "ok" }),
  );
  fastify.get("/health/ready", async (_request, reply) => {
    const checks = await checkReadiness();
    const statusOf = (works: boolean) => (works ? "ok" : "unavailable");
    const statuses = Object.fromEntries(Object.entries(checks).map(([name, works]) => [name, statusOf(works)]));
    return reply
      .code(isReady(checks) ? 200 : 503)
      .header("cache-control", "no-store")
      .send({ status: statusOf(isReady(checks)), checks: statuses, workers: workers?.() });
  });
}

function isReady(checks: Checks): boolean {
  return Object.values(checks).every(Boolean);
}

/** Polling interval of a watch, in milliseconds. */
const WATCH_INTERVAL = 1000;

const MAX_REQUEST_BYTES = 4096;

/**
 * Creates the standard gRPC health service (grpc.health.v1): the empty name is the whole server; all services share its readiness.
 * `stopping` ends the watches, which would otherwise keep their connections open.
 */
export function createHealth(services: readonly DescService[], checkReadiness: CheckReadiness, stopping: AbortSignal) {
  const names = new Set(["", ...services.map(({ typeName }) => typeName)]);
  const statusNow = async () => (isReady(await checkReadiness()) ? Status.SERVING : Status.NOT_SERVING);
  const check: Implementation<typeof Health.method.check> = {
    method: Health.method.check,
    policy: "probe",
    idempotency: "no side effects",
    maxRequestBytes: MAX_REQUEST_BYTES,
    acceptsCompression: false,
    handler:
      ({ service }) =>
      async () => {
        if (!names.has(service)) throw new ConnectError("unknown service", Code.NotFound);
        return { status: await statusNow() };
      },
  };
  const watch: StreamingRpc<typeof Health.method.watch> = {
    method: Health.method.watch,
    policy: "probe",
    maxRequestBytes: MAX_REQUEST_BYTES,
    serve: ({ service }, { signal }) => {
      const status = names.has(service) ? statusNow : async () => Status.SERVICE_UNKNOWN;
      return changes(status, signal, stopping);
    },
  };
  return { check, watch };
}

/** Yields the status and each change of it, until the client disconnects or the server stops, which is a change too. */
async function* changes(statusNow: () => Promise<Status>, left: AbortSignal, stopping: AbortSignal) {
  const signal = AbortSignal.any([left, stopping]);
  let last: Status | undefined;
  while (!signal.aborted) {
    const status = await statusNow();
    if (status !== last) yield { status };
    last = status;
    await sleep(WATCH_INTERVAL, undefined, { signal, ref: false }).catch(() => undefined);
  }
  if (!left.aborted && last === Status.SERVING) yield { status: Status.NOT_SERVING };
}
