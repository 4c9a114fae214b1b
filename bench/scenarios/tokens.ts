import type { Scenario } from "../harness/scenario.ts";
import type { Stage } from "../harness/stage.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { type Algorithm, deriveTokens, verifyAll } from "../subject/fill.ts";
import { stocked, verifyBodies } from "./stock.ts";

/** Derived tokens that were verified before, against issued keys on the same service. */
export const tokenScenarios: readonly Scenario[] = [
  seenBefore("verify-seen-jwt", "verify, cached, derived JWT seen before", "TOKEN_ALGORITHM_JWT"),
  seenBefore("verify-seen-macaroon", "verify, cached, macaroon seen before", "TOKEN_ALGORITHM_MACAROON"),
];

function seenBefore(name: string, work: string, algorithm: Algorithm): Scenario {
  return {
    name,
    group: "verify",
    work,
    against: "verify of an issued key",
    unit: "requests/s",
    judged: "ratio",
    prepare: async (stage) => {
      const { url } = await stocked(stage);
      const load = { url: url + PATHS.verify, headers: JSON_HEADERS, connections: CONNECTIONS };
      return {
        subject: httpLoad(stage, { ...load, bodies: await tokenBodies(stage, algorithm) }),
        baseline: httpLoad(stage, { ...load, bodies: await verifyBodies(stage) }),
      };
    },
  };
}

async function tokenBodies(stage: Stage, algorithm: Algorithm): Promise<string> {
  const { url, secrets } = await stocked(stage);
  const tokens = await deriveTokens(url, secrets, algorithm);
  await verifyAll(url, tokens);
  return jsonBodies(
    stage,
    tokens.map((credential) => ({ credential })),
  );
}
