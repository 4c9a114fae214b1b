import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { cache } from "../support/programs/caches.ts";
import { type Command, succeed } from "../support/programs/run.ts";
import { virtualEnvironment } from "../support/programs/virtual-environment.ts";
import { buildWithCargo, runMaven } from "./builds.ts";
import { OPENAPI_SUITES } from "./openapi/suites.ts";

/** A client in another language. */
export interface Suite {
  readonly name: string;
  /** Programs that must be installed (`toolchains.ts`). */
  readonly needs: readonly string[];
  /** Builds the client without a server. Returns its command, which prints TAP. */
  prepare(): Promise<Command>;
  /** Whether it also runs against the server with TLS. */
  readonly supportsTls: boolean;
}

const here = import.meta.dirname;
const root = resolve(here, "../..");

const PYTHON_REQUIREMENTS = [
  join(here, "python/requirements.txt"),
  join(root, "examples/python/requirements.txt"),
] as const;

export const SUITES: readonly Suite[] = [
  { name: "Go", needs: ["go"], prepare: prepareGo, supportsTls: true },
  { name: "tlog", needs: ["go"], prepare: prepareTlog, supportsTls: false },
  { name: "Python", needs: ["python3"], prepare: preparePython, supportsTls: true },
  { name: "Java", needs: ["javac", "mvn"], prepare: prepareJava, supportsTls: true },
  { name: "curl", needs: ["bash", "curl"], prepare: async () => bash("curl/main.sh"), supportsTls: true },
  { name: "code samples", needs: ["go", "python3", "javac"], prepare: prepareCodeSamples, supportsTls: false },
  { name: "browser", needs: ["chromium"], prepare: prepareBrowser, supportsTls: true },
  { name: "grpcurl", needs: ["go", "bash"], prepare: prepareGrpcurl, supportsTls: false },
  { name: "protoc", needs: ["bash", "python3"], prepare: prepareProtoc, supportsTls: false },
  {
    name: "Rust",
    needs: ["javac", "mvn", "cargo"],
    prepare: () => buildWithCargo(join(here, "rust"), "keyhold-interop"),
    supportsTls: true,
  },
  ...OPENAPI_SUITES,
];

/** The packages of the samples in Python are those of the Python client. */
async function prepareCodeSamples(): Promise<Command> {
  const python = await virtualEnvironment(cache, PYTHON_REQUIREMENTS);
  return { program: process.execPath, args: ["code-samples.ts"], cwd: here, env: { PYTHON: python } };
}

/** Bundles its page when it starts. */
async function prepareBrowser(): Promise<Command> {
  return { program: process.execPath, args: ["browser/main.ts"], cwd: here };
}

function bash(script: string, env: Readonly<Record<string, string>> = {}): Command {
  return { program: "bash", args: [script], cwd: here, env };
}

/** The plugins run in the versions of the Go module. */
async function prepareGo(): Promise<Command> {
  const cwd = join(here, "go");
  await succeed({ program: join(root, "node_modules/.bin/buf"), args: ["generate"], cwd });
  const program = join(cache, "go-client");
  await succeed({ program: "go", args: ["build", "-o", program, "."], cwd });
  return { program, args: [], cwd };
}

async function prepareTlog(): Promise<Command> {
  const program = join(cache, "tlog");
  await succeed({ program: "go", args: ["build", "-o", program, "."], cwd: join(here, "tlog") });
  return { program: process.execPath, args: ["tlog/main.ts"], cwd: here, env: { TLOG: program } };
}

async function prepareGrpcurl(): Promise<Command> {
  const program = join(cache, "grpcurl");
  const args = ["build", "-o", program, "github.com/fullstorydev/grpcurl/cmd/grpcurl"];
  await succeed({ program: "go", args, cwd: join(here, "go") });
  return bash("grpcurl/main.sh", { GRPCURL: program });
}

async function preparePython(): Promise<Command> {
  const cwd = join(here, "python");
  const program = await virtualEnvironment(cache, PYTHON_REQUIREMENTS);
  const gen = join(cache, "python-gen");
  await rm(gen, { recursive: true, force: true });
  await mkdir(gen, { recursive: true });
  await succeed({ program, args: ["generate.py", gen], cwd });
  return { program, args: ["main.py"], cwd, env: { PYTHONPATH: gen, PYTHONDONTWRITEBYTECODE: "1" } };
}

/** Maven fetches protoc and its plugin, too. */
async function prepareJava(): Promise<Command> {
  const cwd = join(here, "java");
  await runMaven(cwd, ["process-classes"]);
  const libraries = await readFile(join(cwd, "target/classpath"), "utf8");
  return { program: "java", args: ["-cp", `target/classes:${libraries}`, "interop.Main"], cwd };
}

/** A package of PyPI contains the program. */
async function prepareProtoc(): Promise<Command> {
  const python = await virtualEnvironment(cache, [join(here, "protoc/requirements.txt")]);
  return bash("protoc/main.sh", { PROTOC: join(dirname(python), "protoc") });
}
