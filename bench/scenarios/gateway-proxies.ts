import { join } from "node:path";
import { type Gateway, type GatewayKind, startGateway } from "../../test/gateways/gateway.ts";
import { envoy, envoyOverHttp } from "../../test/gateways/kinds/envoy.ts";
import { nginx } from "../../test/gateways/kinds/nginx.ts";
import { installOfPython } from "../../test/gateways/programs.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { CONNECTIONS } from "../load/http-load.ts";
import { writeRequests } from "../load/requests.ts";
import { checkedRate, type WrkResult, wrk } from "../load/wrk.ts";
import { startApplication } from "../subject/application.ts";
import { type GatewayService, withGateways } from "./gateways.ts";

/** A gateway in front of an application, with a program from PyPI. */
interface Proxy {
  /** The start of the names of its scenarios. */
  readonly name: string;
  readonly kind: GatewayKind;
  /** The protocol in which it asks. */
  readonly protocol: string;
  /** What makes its file one of the same gateway without authentication. */
  readonly withoutAuthentication: Readonly<Record<string, string>>;
}

const PER_ROUTE = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute";

const PROXIES: readonly Proxy[] = [
  { name: "nginx", kind: nginx, protocol: "forward auth", withoutAuthentication: { "auth_request /_keyhold;": "" } },
  {
    ...{ name: "envoy", kind: envoy, protocol: "ext_authz over gRPC" },
    withoutAuthentication: { "check_settings: { context_extensions: { required_scopes: read } }": "disabled: true" },
  },
  {
    ...{ name: "envoy-http", kind: envoyOverHttp, protocol: "forward auth" },
    withoutAuthentication: {
      'domains: ["*"],': `domains: ["*"], typed_per_filter_config: { envoy.filters.http.ext_authz: { "@type": ${PER_ROUTE}, disabled: true } },`,
    },
  },
];

type Load = (connections: number) => Promise<WrkResult>;

interface Loads {
  readonly guarded: Load;
  readonly open: Load;
}

async function openLoads(fixture: Fixture, { name, kind, withoutAuthentication }: Proxy): Promise<Loads> {
  await installOfPython();
  const [service, application] = await Promise.all([withGateways(fixture), startApplication(fixture)]);
  const { host } = new URL(service.server.url);
  const begin = async (edits: Readonly<Record<string, string>>) => {
    const settings = { application, keyhold: [host, host] as const, token: service.token, edits };
    const gateway = await startGateway(kind, join(fixture.dir, name), settings, (command) =>
      fixture.pinning.on("server", command),
    );
    fixture.onClose(() => gateway.stop());
    return gateway;
  };
  const [guarded, open] = [await begin({}), await begin(withoutAuthentication)];
  await requireAuthentication(guarded, true);
  await requireAuthentication(open, false);
  return { guarded: await loadOf(fixture, guarded, service), open: await loadOf(fixture, open, service) };
}

/** The load also fails by itself if a request with a key is refused. */
async function requireAuthentication({ url }: Gateway, isRequired: boolean): Promise<void> {
  const { status } = await fetch(url);
  if (status !== (isRequired ? 401 : 200)) throw new Error(`${url} answered ${status} to a request without a key`);
}

/** The same requests for both, each with a key. */
async function loadOf(fixture: Fixture, { url }: Gateway, { secrets }: GatewayService): Promise<Load> {
  const headers = { "User-Agent": "curl/8.14.1", Accept: "*/*" };
  const requests = secrets.map((secret) => ({ method: "GET", headers: { Authorization: `Bearer ${secret}` } }));
  const bodies = await writeRequests(fixture, requests);
  return (connections) => wrk(fixture, { url: `${url}/`, headers, bodies, connections });
}

/** Each figure of a gateway, of a round of load. */
interface Figure extends Pick<Scenario, "unit" | "judged"> {
  readonly name: string;
  readonly work: string;
  readonly connections: number;
  read(result: WrkResult): number;
}

const milliseconds =
  (read: (result: WrkResult) => number): Figure["read"] =>
  (result) => {
    checkedRate(result);
    return read(result) / 1000;
  };

/** Latencies are those of one client at a time: with more, each waits for the others. */
const FIGURES: readonly Figure[] = [
  {
    ...{ name: "rate", work: `${CONNECTIONS} connections`, connections: CONNECTIONS },
    ...{ unit: "requests/s", judged: "ratio", read: checkedRate },
  },
  {
    ...{ name: "p50", work: "one connection, median", connections: 1 },
    ...{ unit: "ms", judged: "difference", read: milliseconds(({ p50 }) => p50) },
  },
  {
    ...{ name: "p99", work: "one connection, 99th percentile", connections: 1 },
    ...{ unit: "ms", judged: "difference", read: milliseconds(({ p99 }) => p99) },
  },
];

/** Gateways with the file of deploy/gateways, on the core of Keyhold, compared with the same file without authentication. */
export const gatewayProxyScenarios: readonly Scenario[] = PROXIES.flatMap((proxy) => {
  const loads = once((fixture) => openLoads(fixture, proxy));
  return FIGURES.map(({ name, work, unit, judged, connections, read }): Scenario => {
    const measure =
      (load: Load): Measure =>
      async () =>
        read(await load(connections));
    return {
      ...{ name: `${proxy.name}-auth-${name}`, group: "gateway-proxies", unit, judged, needs: ["python3"] },
      work: `${proxy.kind.name} with ${proxy.protocol}, ${work}`,
      against: "the same without authentication",
      prepare: async (fixture) => {
        const { guarded, open } = await loads(fixture);
        return { subject: measure(guarded), baseline: measure(open) };
      },
    };
  });
});
