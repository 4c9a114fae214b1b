import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, test } from "vitest";
import type { Json } from "../../support/rest.ts";
import { parse, parseAll, root } from "../files.ts";
import { installTools, runTool } from "./tools.ts";

const CHART = join(root, "deploy/helm/keyhold");

/** The oldest version that the chart supports, and the newest of the validator. */
const VERSIONS = ["1.30", "1.37"];

beforeAll(installTools);

async function render(args: readonly string[], chart = CHART): Promise<string> {
  const { stdout, stderr } = await runTool("helm", ["template", "release", chart, "--kube-version", "1.30.0", ...args]);
  if (stdout === "") throw new Error(stderr);
  return stdout;
}

describe.each([
  ["with default values", [], 8],
  ["with every option", ["--values", join(CHART, "ci/full-values.yaml")], 11],
])("the chart %s", (name, args: string[], count) => {
  test("passes helm lint", async () => {
    expect(await runTool("helm", ["lint", "--strict", CHART, ...args])).toMatchObject({ status: 0 });
  });

  test.each(VERSIONS)("is valid for Kubernetes %s", async (version) => {
    const file = join(inject("testDir"), `${name.replaceAll(" ", "-")}.yaml`);
    await writeFile(file, await render(args));
    const said = await runTool("kubernetes-validate", ["--strict", "--kubernetes-version", version, file]);
    expect(said).toMatchObject({ status: 0 });
    const lines = `${said.stdout}${said.stderr}`.trim().split("\n");
    expect(lines).toHaveLength(count);
    // The operator's own kinds are not part of Kubernetes.
    const unknown = lines.filter((line) => !line.includes(" passed "));
    expect(unknown.filter((line) => !line.includes("monitoring.coreos.com/v1"))).toEqual([]);
  });

  test("gives no pod more rights than the restricted profile", async () => {
    const pods = parseAll(await render(args)).flatMap(({ spec }: Json) => spec?.template?.spec ?? []);
    expect(pods).toHaveLength(2);
    for (const pod of pods) {
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
      const [{ securityContext }] = pod.containers;
      expect(securityContext).toMatchObject({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true });
      expect(securityContext.capabilities).toEqual({ drop: ["ALL"] });
    }
  });
});

test.each([
  ["a secret among the configuration", "config.KEYHOLD_ROOT_SECRET=x"],
  ["a misspelt value", "replica=3"],
  ["an invalid number", "replicas=many"],
])("the chart refuses %s", async (_, value) => {
  await expect(render(["--set", value])).rejects.toThrow("don't meet the specifications");
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
