import type { Fixture } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { type Algorithm, deriveTokens, verifyAll } from "../subject/fill.ts";
import { verifyBodies, warmService } from "./warm-service.ts";

/** Derived tokens that were verified before, compared with issued keys on the same service. */
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
    prepare: async (fixture) => {
      const { url } = await warmService(fixture);
      const load = { url: url + PATHS.verify, headers: JSON_HEADERS, connections: CONNECTIONS };
      return {
        subject: httpLoad(fixture, { ...load, bodies: await tokenBodies(fixture, algorithm) }),
        baseline: httpLoad(fixture, { ...load, bodies: await verifyBodies(fixture) }),
      };
    },
  };
}

async function tokenBodies(fixture: Fixture, algorithm: Algorithm): Promise<string> {
  const { url, secrets } = await warmService(fixture);
  const tokens = await deriveTokens(url, secrets, algorithm);
  await verifyAll(url, tokens);
  return jsonBodies(
    fixture,
    tokens.map((credential) => ({ credential })),
  );
}
