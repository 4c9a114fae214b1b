import { restClient, verify } from "../support/rest.ts";
import { callGrpc, frame } from "../support/wire.ts";
import type { Target } from "./target.ts";
import type { World } from "./world.ts";

/** Milliseconds within which an honest client is to have its answer. Far above the usual, for a machine that has much else to do. */
const LIMIT = 3_000;

/** Milliseconds after which no answer is awaited any longer. */
const NEVER = 30_000;

const HEALTH_CHECK = "/grpc.health.v1.Health/Check";

/**
 * Verifies a key over HTTP/1.1 and asks for the health over gRPC, again and again until told to stop, and at least once after
 * that. Returns what went wrong, and the longest time that a call took.
 */
export async function callHonestly(target: Target, { credentials }: World, isOver: () => boolean) {
  const rest = restClient(target, Object.fromEntries(target.credentials));
  const problems: string[] = [];
  let slowest = 0;
  const call = async (name: string, ask: () => Promise<boolean>) => {
    const start = performance.now();
    const before = performance.eventLoopUtilization();
    const good = await inTime(ask()).catch((error: Error) => `${error.message} ${String(error.cause ?? "")}`);
    // The clients are in one process with all that makes the inputs, which must not count: what this process waited for does.
    const { active } = performance.eventLoopUtilization(before);
    const duration = Math.max(0, Math.round(performance.now() - start - active));
    slowest = Math.max(slowest, duration);
    if (good !== true) problems.push(`an honest ${name} failed after ${duration} ms: ${good}`);
    else if (duration > LIMIT) problems.push(`an honest ${name} took ${duration} ms`);
  };
  for (let isLast = false; !isLast && problems.length === 0; ) {
    isLast = isOver();
    await call("verification over REST", async () => (await verify(rest, credentials.issued)).is_valid);
    await call("health check over gRPC", async () => {
      const { status } = await callGrpc(target.url, HEALTH_CHECK, frame(Buffer.alloc(0)));
      return status === 0;
    });
  }
  return { problems, slowest };
}

async function inTime<T>(answer: Promise<T>): Promise<T | string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve(`no answer within ${NEVER} ms`), NEVER);
  return Promise.race([answer, promise]).finally(() => clearTimeout(timer));
}
