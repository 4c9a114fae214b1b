import { uncounted } from "../../src/transport/pipeline/access-log.ts";
import { ConcurrencyLimiter } from "../../src/transport/pipeline/concurrency-limiter.ts";
import { BodyBudget } from "../../src/transport/wire/request-body.ts";

/** Options of a server without RPCs or configuration. */
export function bareServer() {
  return {
    implementations: [],
    streams: [],
    checkReadiness: async () => ({}),
    certificate: undefined,
    corsOrigins: [],
    requestPolicy: null,
    fastPath: true,
    limiter: new ConcurrencyLimiter(),
    counters: uncounted,
    bodyBudget: new BodyBudget(2 ** 26),
  };
}
