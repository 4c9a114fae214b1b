import { paths, verify } from "../support/rest.ts";
import { callGrpc, frame } from "../support/wire.ts";
import type { CaseContext } from "./case-context.ts";
import type { Target } from "./target.ts";

/** Maximum duration of a call in milliseconds, with a large margin for a busy machine. */
const LIMIT = 3_000;

/** The same for a revocation, which must succeed under any load. */
const REVOCATION_LIMIT = 2_000;

/** Milliseconds after which a call counts as unanswered. */
const TIMEOUT = 30_000;

const HEALTH_CHECK = "/grpc.health.v1.Health/Check";

/**
 * Verifies a key and revokes keys over HTTP/1.1, and checks health over gRPC, repeatedly until `isOver`, and once after that. Returns the
 * problems and the longest duration of a call.
 */
export async function runWellBehavedClient(
  target: Target,
  { credentials, takeRevocable }: CaseContext,
  isOver: () => boolean,
) {
  const rest = target.operator;
  const problems: string[] = [];
  let slowest = 0;
  const call = async (name: string, ask: () => Promise<boolean | string>, limit = LIMIT) => {
    const start = performance.now();
    const before = performance.eventLoopUtilization();
    const good = await withTimeout(ask()).catch((error: Error) => `${error.message} ${String(error.cause ?? "")}`);
    // The time in which this process generated inputs is excluded; only the time in which it waited counts.
    const { active } = performance.eventLoopUtilization(before);
    const duration = Math.max(0, Math.round(performance.now() - start - active));
    slowest = Math.max(slowest, duration);
    if (good !== true) problems.push(`a well-behaved ${name} failed after ${duration} ms: ${good}`);
    else if (duration > limit) problems.push(`a well-behaved ${name} took ${duration} ms`);
  };
  for (let isLast = false; !isLast && problems.length === 0; ) {
    isLast = isOver();
    await call("verification over REST", async () => (await verify(rest, credentials.issued)).is_valid);
    const keyId = takeRevocable();
    const revoke = async () => {
      const body = { reason: "REVOCATION_REASON_KEY_COMPROMISE" };
      const { status, text } = await rest("POST", `${paths.keys}/${keyId}:revoke`, body);
      return status === 200 || text;
    };
    if (keyId !== undefined) await call("revocation over REST", revoke, REVOCATION_LIMIT);
    await call("health check over gRPC", async () => {
      const { status } = await callGrpc(target.url, HEALTH_CHECK, frame(Buffer.alloc(0)));
      return status === 0;
    });
  }
  return { problems, slowest };
}

async function withTimeout<T>(answer: Promise<T>): Promise<T | string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve(`no answer within ${TIMEOUT} ms`), TIMEOUT);
  return Promise.race([answer, promise]).finally(() => clearTimeout(timer));
}
