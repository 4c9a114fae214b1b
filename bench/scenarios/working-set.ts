import { create, toBinary } from "@bufbuild/protobuf";
import { VerifyApiKeyRequestSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS, PROTO_HEADERS } from "../load/http-load.ts";
import { type LoadRequest, writeRequests } from "../load/requests.ts";
import { PATHS, times } from "../subject/client.ts";
import { verifyAll } from "../subject/fill.ts";
import { installSeeded } from "../subject/seeded.ts";

/** The keys that a small benchmark would use, which are all in the processor's caches. */
const FEW = 1_000;

const SIZES = [
  { name: "16k", count: 16_000 },
  { name: "64k", count: 64_000 },
  { name: "200k", count: 200_000, long: 60 },
  { name: "1m", count: 1_000_000, long: 300 },
] as const;

const CONNECT_PATH = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";

/** A protocol with which each credential is verified. */
interface Protocol {
  readonly name: string;
  readonly work: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  requestOf(credential: string): LoadRequest;
}

const toJson = (credential: string) => ({ method: "POST", body: JSON.stringify({ credential }) });
const toProto = (credential: string) => ({
  method: "POST",
  body: toBinary(VerifyApiKeyRequestSchema, create(VerifyApiKeyRequestSchema, { credential })),
});
const toHeaders = (credential: string) => ({ method: "GET", headers: { Authorization: `Bearer ${credential}` } });

const PROTOCOLS: readonly Protocol[] = [
  { name: "rest", work: "REST HTTP/1.1", path: PATHS.verify, headers: JSON_HEADERS, requestOf: toJson },
  { name: "connect-json", work: "Connect JSON", path: CONNECT_PATH, headers: JSON_HEADERS, requestOf: toJson },
  { name: "connect-binary", work: "Connect binary", path: CONNECT_PATH, headers: PROTO_HEADERS, requestOf: toProto },
  { name: "forward-auth", work: "forward auth", path: "/v2alpha1/forwardAuth", headers: {}, requestOf: toHeaders },
];

const CLIENTS = 64;

/** Sends each request once, so that its answer is cached. */
async function sendAll(url: string, { headers }: Protocol, requests: readonly LoadRequest[]): Promise<void> {
  const send = async (index: number) => {
    const { method = "", body, headers: own } = requests[index] ?? {};
    const response = await fetch(url, { method, headers: { ...headers, ...own }, ...(body !== undefined && { body }) });
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
  };
  await times(requests.length, send, CLIENTS);
}

/** Verification of many keys in turn, compared with few, over each protocol. h2load, the load over gRPC, sends one key only. */
export const workingSetScenarios: readonly Scenario[] = SIZES.flatMap(({ name: size, count, ...rest }) => {
  const service = once(async (fixture: Fixture) => {
    const environment = { KEYHOLD_GATEWAYS: "forward-auth" };
    const { installation, credentials } = await installSeeded(fixture, { count, credentials: count, environment });
    await verifyAll(installation.server.url, credentials);
    return { url: installation.server.url, credentials };
  });
  return PROTOCOLS.map(
    (protocol): Scenario => ({
      name: `working-set-${protocol.name}-${size}`,
      group: `working-set-${size}`,
      work: `verify of ${count.toLocaleString("en-GB")} cached keys in turn, ${protocol.work}`,
      against: `the same of ${FEW.toLocaleString("en-GB")} keys`,
      unit: "requests/s",
      judged: "ratio",
      ...rest,
      prepare: async (fixture) => {
        const { url, credentials } = await service(fixture);
        const requests = credentials.map(protocol.requestOf);
        const target = { url: url + protocol.path, headers: protocol.headers, connections: CONNECTIONS };
        const load = async (some: readonly LoadRequest[]) =>
          httpLoad(fixture, { ...target, bodies: await writeRequests(fixture, some) });
        await sendAll(target.url, protocol, requests);
        return { subject: await load(requests), baseline: await load(requests.slice(0, FEW)) };
      },
    }),
  );
});
