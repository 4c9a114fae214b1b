import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { toConfig } from "../../../src/server/config/config.ts";
import type { Json } from "../../support/rest.ts";
import { parse, parseAll, root } from "../files.ts";
import { writeSchemas } from "./schemas.ts";
import { installTools, runTool } from "./tools.ts";

const CHART = join(root, "deploy/helm/keyhold");

/** The oldest version that the chart supports, and the newest of the schemas. */
const VERSIONS = ["1.30.0", "1.37.0"];

/** Values of the chart as arguments. */
function set(values: Json): string[] {
  return Object.entries(values).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]);
}

async function render(args: readonly string[], chart = CHART): Promise<string> {
  const { stdout, stderr } = await runTool("helm", ["template", "release", chart, "--kube-version", "1.30.0", ...args]);
  if (stdout === "") throw new Error(stderr);
  return stdout;
}

const HOSTS = ["keyhold.example.com", "*.keys.example.com"];
const GATEWAYS = {
  "config.KEYHOLD_GATEWAYS": "forward-auth,ext-authz",
  gatewayPort: { enabled: true },
  "networkPolicy.gatewaysFrom": [{ podSelector: { matchLabels: { app: "gateway" } } }],
};
const INGRESS = {
  ingress: {
    enabled: true,
    className: "nginx",
    annotations: { "nginx.ingress.kubernetes.io/backend-protocol": "GRPC" },
    hosts: HOSTS,
    paths: ["/v2alpha1", "/keyhold.v2alpha1.ApiKeysService"],
    tls: [{ secretName: "keyhold-public", hosts: HOSTS }],
  },
};
const HTTP_ROUTE = {
  httpRoute: {
    enabled: true,
    annotations: { "example.com/team": "keys" },
    parentRefs: [{ name: "public", namespace: "gateways", sectionName: "https" }],
    hostnames: HOSTS,
  },
};
const CLIENT_CA = "/run/secrets/gateways/ca.crt";
const MTLS = {
  ...GATEWAYS,
  "config.KEYHOLD_GATEWAY_CALLERS": "mtls",
  tls: { existingSecret: "keyhold-tls" },
  extraVolumes: [{ name: "gateways", configMap: { name: "gateways-ca" } }],
  extraVolumeMounts: [{ name: "gateways", mountPath: "/run/secrets/gateways", readOnly: true }],
  extraEnv: [{ name: "KEYHOLD_GATEWAY_CLIENT_CA_FILE", value: CLIENT_CA }],
};
const MONITORING = { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true } };

/** Values, and the number of resources that they add to those of the default values. */
const MATRIX: readonly (readonly [name: string, values: Json, added: number])[] = [
  ["default values", {}, 0],
  ["workers", { "config.KEYHOLD_WORKERS": "4", resources: { limits: { memory: "4Gi" } } }, 0],
  ["other secrets", { database: { existingSecret: "pg", urlKey: "uri" }, rootSecret: { existingSecret: "r" } }, 0],
  ["no migration", { migrate: { enabled: false } }, -1],
  ["no network policy", { networkPolicy: { enabled: false } }, -1],
  ["restricted clients", { networkPolicy: { from: [{ podSelector: {} }], metricsFrom: [{ podSelector: {} }] } }, 0],
  ["autoscaling", { autoscaling: { enabled: true } }, 1],
  ["TLS", { tls: { existingSecret: "keyhold-tls" } }, 0],
  ["a private CA in a ConfigMap", { privateCA: { existingConfigMap: "bundle", key: "bundle.pem" } }, 0],
  ["a private CA in a secret", { privateCA: { existingSecret: "internal-ca" } }, 0],
  ["gateways at the port of the service", { "config.KEYHOLD_GATEWAYS": "forward-auth" }, 0],
  ["a port for gateways", GATEWAYS, 1],
  ["gateways without a policy", { ...GATEWAYS, networkPolicy: { enabled: false } }, 0],
  ["gateways with certificates", MTLS, 1],
  ["monitoring", MONITORING, 2],
  ["an Ingress", INGRESS, 1],
  ["an HTTPRoute", HTTP_ROUTE, 1],
  ["an HTTPRoute to another port", { ...HTTP_ROUTE, service: { port: 80, type: "NodePort" } }, 1],
  ["everything", { ...MTLS, ...MONITORING, ...INGRESS, ...HTTP_ROUTE, privateCA: { existingSecret: "ca" } }, 5],
];

const CASES = [
  ...MATRIX.map(([name, values, added]) => [name, set(values), 8 + added] as const),
  ["ci/full-values.yaml", ["--values", join(CHART, "ci/full-values.yaml")], 14] as const,
];

/** The manifests of each case. */
const manifests = new Map<string, string>();

beforeAll(async () => {
  await installTools();
  for (const [name, args] of CASES) manifests.set(name, await render(args));
});

test.each(VERSIONS)("each manifest is valid for Kubernetes %s, the Gateway API and the operator", async (version) => {
  const folder = join(inject("testDir"), `chart-${version}`);
  await mkdir(join(folder, "manifests"), { recursive: true });
  for (const [name, text] of manifests) {
    await writeFile(join(folder, "manifests", `${name.replaceAll("/", "-")}.yaml`), text);
  }
  const schemas = await writeSchemas(join(folder, "schemas"), version);
  const options = ["-strict", "-summary", "-output", "json", "-kubernetes-version", version];
  const said = await runTool("kubeconform", [...options, "-schema-location", schemas, join(folder, "manifests")]);
  const valid = CASES.reduce((sum, [, , count]) => sum + count, 0);
  expect(JSON.parse(said.stdout)).toEqual({ resources: [], summary: { valid, invalid: 0, errors: 0, skipped: 0 } });
});

describe.each(CASES)("the chart with %s", (name, args, count) => {
  let rendered: Json[];
  let pods: Json[];

  beforeAll(() => {
    rendered = parseAll(String(manifests.get(name)));
    pods = rendered.flatMap(({ spec }) => spec?.template?.spec ?? []);
  });

  const ofKind = (kind: string) => rendered.filter((resource) => resource.kind === kind);

  test("passes helm lint", async () => {
    expect(rendered).toHaveLength(count);
    expect(await runTool("helm", ["lint", "--strict", CHART, ...args])).toMatchObject({ status: 0 });
  });

  test("gives no pod more rights than the restricted profile", () => {
    expect(pods).toHaveLength(ofKind("Job").length + 1);
    for (const pod of pods) {
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
      const [{ securityContext }] = pod.containers;
      expect(securityContext).toMatchObject({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true });
      expect(securityContext.capabilities).toEqual({ drop: ["ALL"] });
    }
  });

  test("mounts each volume, and each file that a variable names", () => {
    for (const { volumes, containers } of pods) {
      const [{ volumeMounts, env }] = containers;
      const names = volumes.map(({ name }: Json) => name);
      expect(new Set(names).size).toBe(names.length);
      expect(volumeMounts.map(({ name }: Json) => name).sort()).toEqual(names.sort());
      const files = env.filter(({ name }: Json) => /_FILE$|^NODE_EXTRA_CA_CERTS$/.test(name));
      for (const { value } of files) {
        const mount = volumeMounts.find(({ mountPath }: Json) => value.startsWith(`${mountPath}/`));
        const { projected } = volumes.find(({ name }: Json) => name === mount.name);
        if (projected === undefined) continue;
        const items = projected.sources.flatMap((source: Json) => (source.secret ?? source.configMap).items);
        expect(items.map(({ path }: Json) => `${mount.mountPath}/${path}`)).toContain(value);
      }
    }
  });

  test("has a configuration that the server accepts, on the ports of its container", () => {
    const [config] = ofKind("ConfigMap");
    const [deployment] = ofKind("Deployment");
    const [container] = deployment.spec.template.spec.containers;
    const variables = container.env.map(({ name, value }: Json) => [name, value ?? "from a secret"]);
    const url = "postgres://keyhold@database/keyhold";
    const image = { KEYHOLD_HOST: "0.0.0.0", KEYHOLD_METRICS_HOST: "0.0.0.0", KEYHOLD_DATABASE_URL: url };
    const { host, port, metrics, gateways } = toConfig({ ...image, ...config.data, ...Object.fromEntries(variables) });
    const listening = [
      { name: "http", host, port },
      { name: "metrics", ...metrics },
    ];
    if (gateways.address !== null) listening.push({ name: "gateways", ...gateways.address });
    const ports = container.ports.map(({ name, containerPort }: Json) => ({
      name,
      host: "0.0.0.0",
      port: containerPort,
    }));
    expect(ports).toEqual(listening);
  });

  test("names ports and services that exist", () => {
    const [container] = ofKind("Deployment")[0].spec.template.spec.containers;
    const ports = container.ports.map(({ name }: Json) => name);
    const services = ofKind("Service");
    const headless = services.find(({ spec }) => spec.clusterIP === "None");
    expect(headless.spec.ports.map(({ targetPort }: Json) => targetPort)).toEqual(ports);
    for (const { spec } of services)
      expect(ports).toEqual(expect.arrayContaining(spec.ports.map((p: Json) => p.targetPort)));
    const admitted = ofKind("NetworkPolicy").flatMap(({ spec }) => spec.ingress.flatMap((rule: Json) => rule.ports));
    expect(ports).toEqual(expect.arrayContaining(admitted.map(({ port }) => port)));
    const { name } = services.find(({ spec }) => spec !== headless.spec && spec.ports[0].name === "http").metadata;
    const toIngress = ofKind("Ingress").flatMap(({ spec }) => spec.rules.flatMap(({ http }: Json) => http.paths));
    for (const { backend } of toIngress) expect(backend.service).toEqual({ name, port: { name: "http" } });
    const toRoute = ofKind("HTTPRoute").flatMap(({ spec }) => spec.rules.flatMap((rule: Json) => rule.backendRefs));
    const published = services.find(({ metadata }) => metadata.name === name).spec.ports[0].port;
    for (const reference of toRoute) expect(reference).toEqual({ name, port: published });
  });

  test("lets Prometheus scrape each pod once", () => {
    for (const { spec } of ofKind("ServiceMonitor")) {
      const wanted = Object.entries(spec.selector.matchLabels);
      const selected = ofKind("Service").filter(({ metadata }) =>
        wanted.every(([label, value]) => metadata.labels[label] === value),
      );
      const ports = selected.flatMap(({ spec: { ports } }) => ports.map(({ name }: Json) => name));
      expect(ports.filter((name) => name === spec.endpoints[0].port)).toHaveLength(1);
    }
  });
});

const UNSPECIFIED = "don't meet the specifications";

test.each<[string, Json, string]>([
  ["a secret among the configuration", { "config.KEYHOLD_ROOT_SECRET": "x" }, UNSPECIFIED],
  ["an address among the configuration", { "config.KEYHOLD_GATEWAY_HOST": "::" }, UNSPECIFIED],
  ["a port among the configuration", { "config.KEYHOLD_GATEWAY_PORT": "4430" }, UNSPECIFIED],
  ["a port among the variables", { extraEnv: [{ name: "KEYHOLD_PORT", value: "80" }] }, UNSPECIFIED],
  ["a variable that is no text", { extraEnv: [{ name: "OTEL_BSP_MAX_QUEUE_SIZE", value: 100 }] }, UNSPECIFIED],
  ["a misspelt variable", { extraEnv: [{ name: "A", valueForm: {} }] }, UNSPECIFIED],
  ["a misspelt value", { replica: 3 }, UNSPECIFIED],
  ["an invalid number", { replicas: "many" }, UNSPECIFIED],
  ["the port of the metrics for the service", { service: { port: 4421 } }, UNSPECIFIED],
  ["a volume without a source", { extraVolumes: [{ name: "files" }] }, UNSPECIFIED],
  ["a volume of the chart", { extraVolumes: [{ name: "secrets", emptyDir: {} }] }, UNSPECIFIED],
  ["a misspelt mount", { extraVolumeMounts: [{ name: "files", mountpath: "/files" }] }, UNSPECIFIED],
  [
    "a mount over the secrets",
    { extraVolumeMounts: [{ name: "files", mountPath: "/run/secrets/keyhold" }] },
    UNSPECIFIED,
  ],
  ["a misspelt CA", { privateCA: { existingConfigmap: "ca" } }, UNSPECIFIED],
  ["two CAs", { privateCA: { existingConfigMap: "a", existingSecret: "b" } }, "privateCA: existingConfigMap and"],
  ["a misspelt gateway port", { gatewayPort: { enable: true } }, UNSPECIFIED],
  [
    "a gateway port without a protocol",
    { ...GATEWAYS, "config.KEYHOLD_GATEWAYS": "" },
    "config.KEYHOLD_GATEWAYS must be set",
  ],
  [
    "a gateway port for everyone",
    { ...GATEWAYS, "networkPolicy.gatewaysFrom": [] },
    "networkPolicy.gatewaysFrom must list the gateways",
  ],
  ["an Ingress for every host", { ingress: { enabled: true } }, "ingress: hosts must list a host"],
  ["a URL as a host", { ingress: { hosts: ["https://example.com"] } }, UNSPECIFIED],
  ["a misspelt Ingress", { ingress: { host: "example.com" } }, UNSPECIFIED],
  ["a misspelt TLS of an Ingress", { ingress: { tls: [{ secret: "a" }] } }, UNSPECIFIED],
  ["a relative path", { ingress: { paths: ["v2alpha1"] } }, UNSPECIFIED],
  [
    "an HTTPRoute without a Gateway",
    { httpRoute: { enabled: true, hostnames: HOSTS } },
    "parentRefs must list a Gateway",
  ],
  [
    "an HTTPRoute for every host",
    { httpRoute: { enabled: true, parentRefs: [{ name: "public" }] } },
    "httpRoute: hostnames must list a host",
  ],
  ["a misspelt Gateway", { httpRoute: { parentRefs: [{ name: "public", section: "https" }] } }, UNSPECIFIED],
])("the chart refuses %s", async (_, values, message) => {
  await expect(render(set(values))).rejects.toThrow(message);
});

test("an image is pinned by its digest in every pod", async () => {
  const digest = `sha256:${"0".repeat(64)}`;
  const args = ["--set", "image.repository=registry.example.com/keyhold", "--set", `image.digest=${digest}`];
  const pods = parseAll(await render(args)).flatMap(({ spec }: Json) => spec?.template?.spec ?? []);
  const images = pods.flatMap(({ containers }: Json) => containers.map(({ image }: Json) => image));
  expect(images).toEqual(
    Array(2).fill(expect.stringMatching(new RegExp(`^registry.example.com/keyhold:[^@]+@${digest}$`))),
  );
  await expect(render(["--set", "image.digest=latest"])).rejects.toThrow("don't meet the specifications");
});

test.each(["ClusterIP", "NodePort", "LoadBalancer"])(
  "a service of type %s does not publish the metrics",
  async (type) => {
    const rendered = parseAll(await render(["--set", `service.type=${type}`]));
    const services = rendered.filter(({ kind }: Json) => kind === "Service");
    const ports = services.map(({ spec }: Json) => [
      spec.type ?? spec.clusterIP,
      spec.ports.map(({ port }: Json) => port),
    ]);
    expect(ports).toEqual([
      [type, [4420]],
      ["None", [4420, 4421]],
    ]);
  },
);

test("no client may scrape a pod unless the values allow it", async () => {
  const rulesOf = async (args: readonly string[]) => {
    const policy = parseAll(await render(args)).find(({ kind }: Json) => kind === "NetworkPolicy");
    return policy.spec.ingress.filter(({ ports }: Json) => ports.some(({ port }: Json) => port === "metrics"));
  };
  expect(await rulesOf([])).toEqual([]);
  const [rule, ...more] = await rulesOf(["--set-json", 'networkPolicy.metricsFrom=[{"podSelector":{}}]']);
  expect([rule.from, more]).toEqual([[{ podSelector: {} }], []]);
});

test("a package of the chart contains the alerts, which are a link in the project", async () => {
  const dir = join(inject("testDir"), "package");
  expect(await runTool("helm", ["package", CHART, "--destination", dir])).toMatchObject({ status: 0 });
  const [file = ""] = await readdir(dir);
  const rules = parseAll(await render(["--set", "prometheusRule.enabled=true"], join(dir, file)));
  const { spec } = rules.find(({ kind }: Json) => kind === "PrometheusRule");
  expect(spec).toEqual(parse("deploy/prometheus/alerts.yml"));
});
