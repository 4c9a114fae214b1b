import { cpuPerRequest } from "../harness/cpu.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { checkCall, grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies, writeBodies, writeRequests } from "../load/requests.ts";
import { PATHS, post } from "../subject/client.ts";
import { issueKeys, KEY, verifyAll } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";

/** Number of keys that the load cycles through, all cached. */
const KEYS = 1000;

const FORM_HEADERS = { "content-type": "application/x-www-form-urlencoded" };

/** The scope that the files of deploy/gateways require. */
const SCOPE = "read";
const FORWARD_AUTH = `/v2alpha1/forwardAuth?required_scopes=${SCOPE}`;

/** The service with the endpoints for gateways, which have an admin token, and keys that are cached. */
export const withGateways = once(async (fixture: Fixture) => {
  const open = await install(fixture);
  const { url } = open.server;
  const { secret } = await post(url + PATHS.issued, { name: "bench", actor_id: "bench", scopes: ["keyhold:verify"] });
  const secrets = await issueKeys(url, KEYS, {}, { ...KEY, scopes: [SCOPE, ...KEY.scopes] });
  await open.server.stop();
  const environment = { KEYHOLD_AUTH: "admin-token", KEYHOLD_GATEWAYS: "forward-auth,ext-authz" };
  const { server } = await install(fixture, { dataDir: open.dataDir, environment });
  await verifyAll(server.url, secrets, { authorization: `Bearer ${secret}` });
  return { server, secrets, token: secret };
});

export type GatewayService = Awaited<ReturnType<typeof withGateways>>;

/** The requests that nginx sends for a client, one for each key, and a verification of each key by the same caller. */
const loads = once(async (fixture: Fixture) => {
  const { server, secrets, token } = await withGateways(fixture);
  const authorization = `Bearer ${token}`;
  const ofClient = { "User-Agent": "curl/8.14.1", Accept: "*/*", "X-Forwarded-For": "203.0.113.7" };
  const headers = { ...ofClient, "X-Keyhold-Authorization": authorization };
  await requireVerdict(server.url + FORWARD_AUTH, { ...headers, Authorization: `Bearer ${secrets[0]}` });
  const requests = secrets.map((secret) => ({ method: "GET", headers: { Authorization: `Bearer ${secret}` } }));
  const bodies = secrets.map((credential) => ({ credential }));
  const asked = { url: server.url + FORWARD_AUTH, headers, bodies: await writeRequests(fixture, requests) };
  const verified = { url: server.url + PATHS.verify, bodies: await jsonBodies(fixture, bodies) };
  const forms = await writeBodies(
    fixture,
    secrets.map((token) => new URLSearchParams({ token }).toString()),
  );
  const introspected = { url: `${server.url}/v2alpha1/introspect`, bodies: forms };
  return {
    server,
    asked: httpLoad(fixture, { ...asked, connections: CONNECTIONS }),
    introspected: httpLoad(fixture, {
      ...introspected,
      ...{ headers: { ...FORM_HEADERS, authorization }, connections: CONNECTIONS },
    }),
    verified: httpLoad(fixture, {
      ...verified,
      ...{ headers: { ...JSON_HEADERS, authorization }, connections: CONNECTIONS },
    }),
  };
});

async function requireVerdict(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const response = await fetch(url, { headers });
  if (response.status !== 200 || !response.headers.get("x-keyhold-key-id")) {
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  }
}

/** What Envoy asks about a request with a key, and a verification of this key by the same caller. */
const grpcLoads = once(async (fixture: Fixture) => {
  const { server, secrets, token } = await withGateways(fixture);
  const { url } = server;
  const [secret = ""] = secrets;
  const headers = { authorization: `Bearer ${token}` };
  return {
    server,
    checked: await grpcLoad(fixture, url, checkCall(secret, SCOPE), headers),
    verified: await grpcLoad(fixture, url, verifyCall(secret), headers),
  };
});

const shared = {
  group: "gateways",
  against: "verify of the same keys by the same caller, REST HTTP/1.1",
  judged: "ratio",
} as const;

const extAuthz = { ...shared, against: "verify of the same key by the same caller, gRPC" } as const;

/** What gateways and resource servers ask, with an admin token in every request, so that each needs two verdicts. */
export const gatewayScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "forward-auth",
    work: "forward auth, cached, HTTP/1.1, gateway with an admin token",
    unit: "requests/s",
    prepare: async (fixture) => {
      const { asked, verified } = await loads(fixture);
      return { subject: asked, baseline: verified };
    },
  },
  {
    ...shared,
    name: "forward-auth-cpu",
    work: "CPU of a forward auth, cached, HTTP/1.1, gateway with an admin token",
    unit: "µs",
    prepare: async (fixture) => {
      const { server, asked, verified } = await loads(fixture);
      return {
        subject: cpuPerRequest(fixture, server, asked),
        baseline: cpuPerRequest(fixture, server, verified),
      };
    },
  },
  {
    ...shared,
    name: "introspect",
    work: "token introspection, cached, HTTP/1.1, caller with an admin token",
    unit: "requests/s",
    prepare: async (fixture) => {
      const { introspected, verified } = await loads(fixture);
      return { subject: introspected, baseline: verified };
    },
  },
  {
    ...extAuthz,
    name: "ext-authz",
    work: "ext_authz, cached, gRPC, gateway with an admin token",
    unit: "calls/s",
    prepare: async (fixture) => {
      const { checked, verified } = await grpcLoads(fixture);
      return { subject: checked, baseline: verified };
    },
  },
  {
    ...extAuthz,
    name: "ext-authz-cpu",
    work: "CPU of an ext_authz call, cached, gRPC, gateway with an admin token",
    unit: "µs",
    prepare: async (fixture) => {
      const { server, checked, verified } = await grpcLoads(fixture);
      return { subject: cpuPerRequest(fixture, server, checked), baseline: cpuPerRequest(fixture, server, verified) };
    },
  },
];
