import { startBaseline } from "../baseline/start.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { startInProcess } from "../in-process/start.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { checkedRate, wrk } from "../load/wrk.ts";
import { PATHS, post } from "../subject/client.ts";
import { startCluster } from "../subject/cluster.ts";
import { deriveTokens, issueKeys, verifyAll } from "../subject/fill.ts";
import { warmService } from "./warm-service.ts";

/** Operations in a round, about half a second. */
const COUNT = 5_000;

/** Each JWT is sent once, and deriving takes longer than verifying: rounds of one second, with more JWTs than a round can use. */
const FRESH = { seconds: 1, count: 12_000 };

const inProcess = once(async (fixture) => startInProcess(fixture, (await warmService(fixture)).installation));

const shared = { group: "signatures", unit: "operations/s", judged: "ratio" } as const;

/** Operations dominated by a signature, compared with the signature alone. */
export const signatureScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-first-jwt",
    work: "verify, first sight of a JWT: the RPC in process (guard, validation, handler)",
    against: "crypto.verify of the same signatures in a loop",
    prepare: async (fixture) => {
      const run = await inProcess(fixture);
      return { subject: () => run("verify", COUNT), baseline: () => run("verify-signatures", COUNT) };
    },
  },
  {
    ...shared,
    name: "verify-first-jwt-rest",
    work: "verify, first sight of a JWT: over REST",
    against: "crypto.verify of as many such signatures in a loop",
    prepare: async (fixture) => {
      const run = await inProcess(fixture);
      await run("verify", COUNT);
      return { subject: await freshJwts(fixture), baseline: () => run("verify-signatures", COUNT) };
    },
  },
  {
    ...shared,
    name: "derive-jwt",
    work: "derive JWT: the RPC in process (guard, validation, handler)",
    against: "crypto.sign in a loop",
    prepare: async (fixture) => {
      const run = await inProcess(fixture);
      return { subject: () => run("derive", COUNT), baseline: () => run("sign", COUNT) };
    },
  },
  {
    ...shared,
    name: "derive-jwt-rest",
    work: "derive JWT: over REST",
    against: "crypto.sign in a loop",
    prepare: async (fixture) => {
      const [run, { url }] = await Promise.all([inProcess(fixture), warmService(fixture)]);
      return { subject: await derivations(fixture, url + PATHS.derive), baseline: () => run("sign", COUNT) };
    },
  },
  {
    ...shared,
    name: "derive-jwt-fastify",
    work: "derive JWT: over REST",
    against: "bare Fastify route with the same bodies and the same signature",
    prepare: async (fixture) => {
      const { url, credential } = await warmService(fixture);
      const answer = await post(url + PATHS.derive, deriveRequest(credential));
      const baseline = await startBaseline(fixture, "sign", { answer });
      return {
        subject: await derivations(fixture, url + PATHS.derive),
        baseline: await derivations(fixture, `${baseline.url}/derive`),
      };
    },
  },
];

const deriveRequest = (credential: string) => ({ credential, algorithm: "TOKEN_ALGORITHM_JWT" });

/** Measures derivations from each key in turn. */
async function derivations(fixture: Fixture, url: string): Promise<Measure> {
  const { secrets } = await warmService(fixture);
  const bodies = await jsonBodies(fixture, secrets.map(deriveRequest));
  return httpLoad(fixture, { url, headers: JSON_HEADERS, bodies, connections: CONNECTIONS });
}

/** Measures the verification of JWTs that another node derives before each round: the one that derives a token caches it. */
async function freshJwts(fixture: Fixture): Promise<Measure> {
  const { installation, others } = await startCluster(fixture, 2);
  const { url } = installation.server;
  const [credential = ""] = await issueKeys(url, 1);
  const load = { url: url + PATHS.verify, headers: JSON_HEADERS, connections: CONNECTIONS };
  const parents = Array.from({ length: FRESH.count }, () => credential);
  return async () => {
    const tokens = await deriveTokens(others[0]?.url ?? "", parents, "TOKEN_ALGORITHM_JWT");
    const requests = tokens.map((token) => ({ credential: token }));
    const result = await wrk(
      { ...fixture, seconds: FRESH.seconds },
      { ...load, bodies: await jsonBodies(fixture, requests) },
    );
    await verifyAll(url, tokens.slice(0, 1000));
    if (result.requests > tokens.length) throw new Error(`${tokens.length} JWTs were not enough`);
    return checkedRate(result);
  };
}
