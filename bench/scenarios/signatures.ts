import type { Measure, Scenario } from "../harness/scenario.ts";
import { once, type Stage } from "../harness/stage.ts";
import { startInProcess } from "../in-process/start.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { soundRate, wrk } from "../load/wrk.ts";
import { PATHS } from "../subject/client.ts";
import { deriveTokens, verifyAll } from "../subject/fill.ts";
import { stocked } from "./stock.ts";

/** Operations of a round: about half a second. */
const COUNT = 5_000;

/** Each JWT is sent once, and deriving them takes longer than verifying them: rounds of a second, and more JWTs than it can need. */
const FRESH = { seconds: 1, count: 12_000 };

const inProcess = once(async (stage) => startInProcess(stage, (await stocked(stage)).installation));

const shared = { group: "signatures", unit: "operations/s", judged: "ratio" } as const;

/** Work whose cost is a signature, against the signature alone. */
export const signatureScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-first-jwt",
    work: "verify, first sight of a JWT: the RPC in process (guard, validation, handler)",
    against: "crypto.verify of the same signatures in a loop",
    prepare: async (stage) => {
      const ask = await inProcess(stage);
      return { subject: () => ask("verify", COUNT), baseline: () => ask("verify-signatures", COUNT) };
    },
  },
  {
    ...shared,
    name: "verify-first-jwt-rest",
    work: "verify, first sight of a JWT: over REST",
    against: "crypto.verify of as many such signatures in a loop",
    prepare: async (stage) => {
      const ask = await inProcess(stage);
      await ask("verify", COUNT);
      return { subject: await freshJwts(stage), baseline: () => ask("verify-signatures", COUNT) };
    },
  },
  {
    ...shared,
    name: "derive-jwt",
    work: "derive JWT: the RPC in process (guard, validation, handler)",
    against: "crypto.sign in a loop",
    prepare: async (stage) => {
      const ask = await inProcess(stage);
      return { subject: () => ask("derive", COUNT), baseline: () => ask("sign", COUNT) };
    },
  },
  {
    ...shared,
    name: "derive-jwt-rest",
    work: "derive JWT: over REST",
    against: "crypto.sign in a loop",
    prepare: async (stage) => {
      const [ask, { url, secrets }] = await Promise.all([inProcess(stage), stocked(stage)]);
      const requests = secrets.map((credential) => ({ credential, algorithm: "TOKEN_ALGORITHM_JWT" }));
      const bodies = await jsonBodies(stage, requests);
      const load = { url: url + PATHS.derive, headers: JSON_HEADERS, bodies, connections: CONNECTIONS };
      return { subject: httpLoad(stage, load), baseline: () => ask("sign", COUNT) };
    },
  },
];

/** Rounds of verifying JWTs that were derived for the round. */
async function freshJwts(stage: Stage): Promise<Measure> {
  const { url, credential } = await stocked(stage);
  const load = { url: url + PATHS.verify, headers: JSON_HEADERS, connections: CONNECTIONS };
  const parents = Array.from({ length: FRESH.count }, () => credential);
  return async () => {
    const tokens = await deriveTokens(url, parents, "TOKEN_ALGORITHM_JWT");
    const requests = tokens.map((token) => ({ credential: token }));
    const result = await wrk(
      { ...stage, seconds: FRESH.seconds },
      { ...load, bodies: await jsonBodies(stage, requests) },
    );
    await verifyAll(url, tokens.slice(0, 1000));
    if (result.requests > tokens.length) throw new Error(`${tokens.length} JWTs were too few`);
    return soundRate(result);
  };
}
