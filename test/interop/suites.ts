import { mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Command, succeed } from "../support/programs/run.ts";
import { virtualEnvironment } from "../support/programs/virtual-environment.ts";

/** A client in another language. */
export interface Suite {
  readonly name: string;
  /** Builds the client without a server. Returns its command, which prints TAP. */
  prepare(): Promise<Command>;
  /** Whether it also runs against the server with TLS. */
  readonly supportsTls: boolean;
}

const here = import.meta.dirname;
const root = resolve(here, "../..");
/** Build results, which can be recreated at any time. */
const cache = join(root, "node_modules/.cache/keyhold-interop");

export const SUITES: readonly Suite[] = [
  { name: "Go", prepare: prepareGo, supportsTls: true },
  { name: "Python", prepare: preparePython, supportsTls: true },
  { name: "curl", prepare: async () => bash("curl/main.sh"), supportsTls: true },
  { name: "grpcurl", prepare: prepareGrpcurl, supportsTls: false },
];

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

async function prepareGrpcurl(): Promise<Command> {
  const program = join(cache, "grpcurl");
  const args = ["build", "-o", program, "github.com/fullstorydev/grpcurl/cmd/grpcurl"];
  await succeed({ program: "go", args, cwd: join(here, "go") });
  return bash("grpcurl/main.sh", { GRPCURL: program });
}

async function preparePython(): Promise<Command> {
  const cwd = join(here, "python");
  const program = await virtualEnvironment(cache, [
    join(cwd, "requirements.txt"),
    join(root, "examples/python/requirements.txt"),
  ]);
  const gen = join(cache, "python-gen");
  await rm(gen, { recursive: true, force: true });
  await mkdir(gen, { recursive: true });
  await succeed({ program, args: ["generate.py", gen], cwd });
  return { program, args: ["main.py"], cwd, env: { PYTHONPATH: gen, PYTHONDONTWRITEBYTECODE: "1" } };
}
