import { create, toBinary } from "@bufbuild/protobuf";
import { VerifyApiKeyRequestSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { goLoad } from "../load/go-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS, PROTO_HEADERS } from "../load/http-load.ts";
import { type LoadRequest, writeRequests } from "../load/requests.ts";
import { sendAll, type WrkOptions } from "../load/wrk.ts";
import { PATHS } from "../subject/client.ts";
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
  /** Default: by HTTP/1.1. */
  readonly load?: (fixture: Fixture, url: string, credentials: readonly string[]) => Promise<Measure>;
  readonly needs?: Scenario["needs"];
}

const toJson = (credential: string) => ({ method: "POST", body: JSON.stringify({ credential }) });
const toProto = (credential: string) => ({
  method: "POST",
  body: toBinary(VerifyApiKeyRequestSchema, create(VerifyApiKeyRequestSchema, { credential })),
});
const toHeaders = (credential: string) => ({ method: "GET", headers: { Authorization: `Bearer ${credential}` } });

const BINARY = { path: CONNECT_PATH, headers: PROTO_HEADERS, requestOf: toProto };

/** As many connections and calls in flight as those of h2load, which sends one key only. */
const byCalls: Protocol["load"] = (fixture, url, credentials) =>
  goLoad(fixture, url, credentials, ["-unary", "-streams", "8"]);

const PROTOCOLS: readonly Protocol[] = [
  { name: "rest", work: "REST HTTP/1.1", path: PATHS.verify, headers: JSON_HEADERS, requestOf: toJson },
  { name: "connect-json", work: "Connect JSON", path: CONNECT_PATH, headers: JSON_HEADERS, requestOf: toJson },
  { ...BINARY, name: "connect-binary", work: "Connect binary" },
  // The service caches one answer for both: it is the same message.
  { ...BINARY, name: "grpc", work: "gRPC", load: byCalls, needs: ["go"] },
  { name: "forward-auth", work: "forward auth", path: "/v2alpha1/forwardAuth", headers: {}, requestOf: toHeaders },
];

async function wrkOptions(
  fixture: Fixture,
  url: string,
  { path, headers, requestOf }: Protocol,
  credentials: readonly string[],
): Promise<WrkOptions> {
  const bodies = await writeRequests(fixture, credentials.map(requestOf));
  return { url: url + path, headers, bodies, connections: CONNECTIONS };
}

/** Verification of many keys, compared with few, over each protocol. */
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
      work: `verify of ${count.toLocaleString("en-GB")} cached keys, ${protocol.work}`,
      against: `the same of ${FEW.toLocaleString("en-GB")} keys`,
      unit: "requests/s",
      judged: "ratio",
      ...rest,
      ...(protocol.needs && { needs: protocol.needs }),
      prepare: async (fixture) => {
        const { url, credentials } = await service(fixture);
        const few = credentials.slice(0, FEW);
        const ofAll = await wrkOptions(fixture, url, protocol, credentials);
        // Each answer is then cached.
        await sendAll(fixture, ofAll);
        const { load } = protocol;
        return load === undefined
          ? {
              subject: httpLoad(fixture, ofAll),
              baseline: httpLoad(fixture, await wrkOptions(fixture, url, protocol, few)),
            }
          : { subject: await load(fixture, url, credentials), baseline: await load(fixture, url, few) };
      },
    }),
  );
});
