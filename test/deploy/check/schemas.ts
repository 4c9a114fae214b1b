import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { succeed } from "../../support/programs/run.ts";
import type { Json } from "../../support/rest.ts";
import { parseAll } from "../files.ts";
import { pathOf } from "./tools.ts";

/**
 * kubeconform reads its schemas from a repository on GitHub, and the tests use package registries only: those of Kubernetes are in a Python
 * package, those of other kinds in the Go modules of their projects.
 */
const CUSTOM_RESOURCES = [
  ["sigs.k8s.io/gateway-api@v1.6.3", "config/crd/standard", ["httproutes"]],
  [
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "example/prometheus-operator-crd",
    ["servicemonitors", "prometheusrules"],
  ],
] as const;

/** Writes the schemas for a version of Kubernetes into a folder. Returns the pattern of their paths for kubeconform. */
export async function writeSchemas(folder: string, version: string): Promise<string> {
  const script = "import kubernetes_validate as k; print(k.__path__[0])";
  const installed = await succeed({ program: pathOf("python"), args: ["-c", script], cwd: import.meta.dirname });
  const source = join(installed.trim(), `kubernetes-json-schema/v${version}-local-strict`);
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(source)) {
    const { $id: _, ...schema } = JSON.parse(await readFile(join(source, name), "utf8"));
    await writeFile(
      join(folder, name),
      JSON.stringify(schema).replaceAll("/api/_definitions.json", "_definitions.json"),
    );
  }
  for (const [name, schema] of await customSchemas()) await writeFile(join(folder, name), JSON.stringify(schema));
  return join(folder, "{{ .ResourceKind }}{{ .KindSuffix }}.json");
}

async function customSchemas(): Promise<[name: string, schema: Json][]> {
  const modules = CUSTOM_RESOURCES.map(async ([module, path, plurals]) => {
    const args = ["mod", "download", "-json", module];
    const folder = join(JSON.parse(await succeed({ program: "go", args, cwd: import.meta.dirname })).Dir, path);
    const files = (await readdir(folder)).filter((name) => plurals.some((plural) => name.endsWith(`_${plural}.yaml`)));
    return Promise.all(files.map(async (name) => toSchemas(await readFile(join(folder, name), "utf8"))));
  });
  return (await Promise.all(modules)).flat(2);
}

function toSchemas(definition: string): [name: string, schema: Json][] {
  const { group, names, versions } = parseAll(definition)[0].spec;
  return versions.map(({ name, schema }: Json) => {
    const { properties } = schema.openAPIV3Schema;
    properties.metadata = { $ref: "_definitions.json#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" };
    return [`${names.singular}-${group.split(".")[0]}-${name}.json`, closed(schema.openAPIV3Schema)];
  });
}

/** The API server drops unknown fields without an error; kubeconform reports them. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  return schema.type === "object" && schema.properties ? { additionalProperties: false, ...copy } : copy;
}
