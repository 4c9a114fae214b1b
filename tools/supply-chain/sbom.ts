import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { build } from "vite";
import { isInstalled, type Lockfile, nameOf } from "./lockfile.ts";

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
  readonly type: string;
  readonly purl: string;
  readonly scope?: string;
  readonly properties?: readonly unknown[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly unknown[];
}

/**
 * Writes the bill of materials of what runs in production: in the server, with the embedded PostgreSQL of every platform, and in browsers. The
 * latter are what the component keyhold-console depends on.
 */
export async function writeSbom(root: string, file: string): Promise<Bom> {
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  const lock: Lockfile = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  const bom = ofProduction(JSON.parse(stdout), lock, await bundledInConsole(root));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(bom, null, 2)}\n`);
  return bom;
}

/** Returns `name@version` of each library of which the built files of the console have a part. */
async function bundledInConsole(root: string): Promise<Set<string>> {
  const configFile = join(root, "console/vite.config.ts");
  const fileName = "licenses.json";
  const built = await build({ configFile, logLevel: "warn", build: { write: false, license: { fileName } } });
  const files = "output" in built ? built.output : [];
  const source = files.flatMap((file) => (file.fileName === fileName && file.type === "asset" ? [file.source] : []));
  const libraries: readonly Library[] = JSON.parse(String(source));
  return new Set(libraries.map(({ name, version }) => `${name}@${version}`));
}

interface Library {
  readonly name: string;
  readonly version: string;
}

/** npm's own `--omit=dev` leaves out what is needed in production and by a tool as well, such as jose (npm 11). */
function ofProduction(bom: Bom, { packages }: Lockfile, bundled: ReadonlySet<string>): Bom {
  const { component } = bom.metadata;
  const production = Object.entries(packages).filter(([path, { dev, link }]) => isInstalled(path) && !dev && !link);
  const server = new Set(production.map(([path, { version }]) => `${nameOf(path)}@${version}`));
  const consoleRef = `keyhold-console@${packages.console?.version}`;
  const refs = new Set([...server, ...bundled, consoleRef]);
  return {
    ...bom,
    // npm takes the name of the folder for that of the package.
    metadata: { ...bom.metadata, component: { ...component, name: "keyhold" } },
    components: bom.components
      .filter((one) => refs.has(one["bom-ref"]))
      .map((one) => {
        if (one["bom-ref"] === consoleRef) return { ...one, type: "application", name: "keyhold-console" };
        // To npm, the libraries of the console are development dependencies.
        return server.has(one["bom-ref"]) ? one : { ...one, scope: "required", properties: [] };
      }),
    dependencies: bom.dependencies
      .filter(({ ref }) => refs.has(ref) || ref === component["bom-ref"])
      .map(({ ref, dependsOn }) => ({
        ref,
        dependsOn: ref === consoleRef ? [...bundled] : dependsOn.filter((one) => refs.has(one)),
      })),
  };
}
