import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type Lockfile, nameOf } from "./lockfile.ts";

/** What of a CycloneDX document is looked at (https://cyclonedx.org/docs/1.5/json/). */
export interface Bom {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly metadata: { readonly component: { readonly "bom-ref": string; readonly name: string } };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

export interface Component {
  /** `name@version` in what npm writes. */
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly unknown[];
}

/** Writes the bill of materials of what runs in production, with the embedded PostgreSQL of every platform. */
export async function writeSbom(root: string, file: string): Promise<Bom> {
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  const bom = ofProduction(JSON.parse(stdout), JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(bom, null, 2)}\n`);
  return bom;
}

/** npm's own `--omit=dev` leaves out what is needed in production and by a tool as well, such as jose (npm 11). */
function ofProduction(bom: Bom, { packages }: Lockfile): Bom {
  const { component } = bom.metadata;
  const production = Object.entries(packages).filter(([path, { dev, link }]) => path !== "" && !dev && !link);
  const refs = new Set(production.map(([path, { version }]) => `${nameOf(path)}@${version}`));
  return {
    ...bom,
    // npm takes the name of the folder for that of the package.
    metadata: { ...bom.metadata, component: { ...component, name: "keyhold" } },
    components: bom.components.filter((one) => refs.has(one["bom-ref"])),
    dependencies: bom.dependencies
      .filter(({ ref }) => refs.has(ref) || ref === component["bom-ref"])
      .map((one) => ({ ...one, dependsOn: one.dependsOn.filter((ref) => refs.has(ref)) })),
  };
}
