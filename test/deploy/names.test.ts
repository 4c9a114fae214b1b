import { expect, test } from "vitest";
import type { Json } from "../support/rest.ts";
import { compose, dockerfile, envoy, files, nginx, parse, read, yamlFiles } from "./files.ts";

const PORT = 4420;
const METRICS_PORT = 4421;
const GATEWAY_PORT = 4422;

test.each(yamlFiles)("%s is YAML", (file) => {
  expect(parse(file)).toBeTypeOf("object");
});

test("the tested files exist", () => {
  expect(yamlFiles.length).toBeGreaterThan(6);
  expect(files.length).toBeGreaterThan(25);
});

test("docs/configuration.md lists every variable in use", () => {
  const variables = /\bKEYHOLD_[A-Z][A-Z_]*[A-Z]\b/g;
  const set = files
    .filter((file) => !file.endsWith(".schema.json"))
    .flatMap((file) => read(file).match(variables) ?? []);
  const known = new Set(read("docs/configuration.md").match(variables));
  expect(new Set(set).size).toBeGreaterThan(6);
  expect([...new Set(set)].filter((name) => !known.has(name))).toEqual([]);
});

test("all files use the same ports and the same user", () => {
  const user = Number(/^USER (\d+):\d+$/m.exec(dockerfile)?.[1]);
  expect(user).toBeGreaterThan(0);
  expect(/^EXPOSE (.*)$/m.exec(dockerfile)?.[1]).toBe(`${PORT} ${METRICS_PORT}`);
  const deployment = read("deploy/helm/keyhold/templates/deployment.yaml");
  const ports = [PORT, METRICS_PORT, GATEWAY_PORT].map((port) => `containerPort: ${port}`);
  expect(deployment.match(/containerPort: \d+/g)).toEqual(ports);
  expect(read("deploy/helm/keyhold/templates/_helpers.tpl")).toContain(`runAsUser: ${user}\n`);
  expect(parse("deploy/helm/keyhold/values.yaml").service.port).toBe(PORT);
});

test("nginx, Envoy and Prometheus use the servers of compose", () => {
  const names = Object.keys(compose.services).filter((name) => name.startsWith("keyhold-"));
  const at = (port: number) => names.map((name) => `${name}:${port}`);
  expect(names).toHaveLength(3);
  expect([...nginx.matchAll(/^ {4}server (\S+)/gm)].map(([, address]) => address)).toEqual([...at(PORT), ...at(PORT)]);
  const [cluster] = envoy.clusters;
  const endpoints: Json[] = cluster.load_assignment.endpoints[0].lb_endpoints;
  const addresses = endpoints.map(({ endpoint }) => endpoint.address.socket_address);
  expect(addresses.map(({ address, port_value }) => `${address}:${port_value}`)).toEqual(at(PORT));
  const [job] = parse("deploy/compose/prometheus.yml").scrape_configs;
  expect(job.static_configs[0].targets).toEqual(at(METRICS_PORT));
});

test("the chart has this version and the alerts", () => {
  const { version } = JSON.parse(read("package.json"));
  const chart = "deploy/helm/keyhold";
  expect(parse(`${chart}/Chart.yaml`).appVersion).toBe(version);
  expect(read(`${chart}/files/alerts.yml`)).toBe(read("deploy/prometheus/alerts.yml"));
});
