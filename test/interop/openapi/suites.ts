import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { cache } from "../../support/programs/caches.ts";
import { type Command, succeed } from "../../support/programs/run.ts";
import { virtualEnvironment } from "../../support/programs/virtual-environment.ts";
import { buildWithCargo, runMaven } from "../builds.ts";
import type { Suite } from "../suites.ts";

const here = import.meta.dirname;
/** What a server returns at /openapi.json. */
const DOCUMENT = resolve(here, "../../../docs/openapi.json");

/** Clients over REST that generators make of the OpenAPI document, unchanged. Their code is generated in each run. */
export const OPENAPI_SUITES: readonly Suite[] = [
  { name: "OpenAPI Java", needs: ["javac", "mvn"], prepare: () => prepareJava(JACKSON), supportsTls: false },
  { name: "OpenAPI Java, OkHttp", needs: ["javac", "mvn"], prepare: () => prepareJava(OKHTTP), supportsTls: false },
  {
    name: "OpenAPI Rust",
    needs: ["javac", "mvn", "cargo"],
    prepare: () => buildWithCargo(join(here, "rust"), "openapi-client"),
    supportsTls: false,
  },
  { name: "OpenAPI TypeScript", needs: [], prepare: prepareTypeScript, supportsTls: false },
  { name: "OpenAPI Python", needs: ["python3"], prepare: preparePython, supportsTls: false },
];

/** Version 7.14 drops the fields of a class whose schema forbids unknown ones, later versions do not. */
const JACKSON = { folder: "openapi-java", options: ["-Dgenerator.version=7.14.0"] };
const OKHTTP = { folder: "openapi-java-okhttp", options: ["-Pokhttp-gson"] };

/** openapi-generator, with its Maven plugin. */
async function prepareJava({ folder, options }: typeof JACKSON): Promise<Command> {
  const target = join(cache, folder);
  // The generator leaves the classes of schemas that the document no longer has.
  await rm(target, { recursive: true, force: true });
  await runMaven(join(here, "java"), ["compile", `-Dbuild.folder=${target}`, ...options]);
  const classes = [join(target, "classes"), join(target, "lib/*")].join(":");
  return { program: "java", args: ["-cp", classes, "interop.Main"], cwd: here };
}

/** openapi-typescript with and without enums, compiled by the TypeScript that it requires. */
async function prepareTypeScript(): Promise<Command> {
  const cwd = join(here, "typescript");
  const npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  await succeed({ program: "npm", args: npm, cwd });
  const bin = (name: string) => join(cwd, "node_modules/.bin", name);
  await rm(join(cwd, "generated"), { recursive: true, force: true });
  const generator = bin("openapi-typescript");
  await succeed({ program: generator, args: [DOCUMENT, "--enum", "-o", "generated/schema.ts"], cwd });
  await succeed({ program: generator, args: [DOCUMENT, "-o", "generated/plain.ts"], cwd });
  await succeed({ program: bin("tsc"), args: [], cwd });
  return { program: process.execPath, args: ["generated/js/main.js"], cwd };
}

/** openapi-python-client, whose warnings name parts that it could not generate. */
async function preparePython(): Promise<Command> {
  const cwd = join(here, "python");
  const python = await virtualEnvironment(join(cache, "openapi-python"), [join(cwd, "requirements.txt")]);
  const gen = join(cache, "openapi-python-gen");
  await rm(gen, { recursive: true, force: true });
  const output = ["--meta", "none", "--output-path", join(gen, "keyhold_rest")];
  const args = ["generate", "--path", DOCUMENT, "--config", "config.yml", "--fail-on-warning", ...output];
  await succeed({ program: join(python, "../openapi-python-client"), args, cwd });
  // tap.py is that of the client over gRPC.
  const path = [gen, resolve(here, "../python")].join(":");
  return { program: python, args: ["main.py"], cwd, env: { PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: "1" } };
}
