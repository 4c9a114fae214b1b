import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

/** The layer of every folder of src/ (docs/architecture.md). A folder imports from lower layers and from itself. */
const LAYERS: Readonly<Record<string, number>> = {
  lib: 0,
  domain: 1,
  credential: 2,
  token: 2,
  keys: 3,
  verify: 3,
  signing: 3,
  hashing: 3,
  cluster: 3,
  "embedded-postgres": 3,
  postgres: 4,
  api: 4,
  auth: 4,
  client: 4,
  observability: 4,
  transport: 5,
  verifier: 5,
  server: 6,
  cli: 7,
};

/** Packages and generated code, and the only folders that may import them. */
const RESTRICTED: Readonly<Record<string, readonly string[]>> = {
  gen: ["api", "transport", "cli", "client", "verifier"],
  jose: ["token", "verifier"],
  postgres: ["postgres"],
  fastify: ["transport", "verifier", "server"],
  "@fastify/cors": ["transport"],
  "@connectrpc/connect": ["api", "transport", "client", "verifier", "cli"],
  "@connectrpc/connect-node": ["transport"],
  "@connectrpc/connect-fastify": ["transport"],
  "@connectrpc/connect-web": ["client"],
  "@bufbuild/protobuf": ["api", "transport", "cli", "client", "verifier"],
  "@bufbuild/protovalidate": [],
  "embedded-postgres": ["embedded-postgres"],
  "@node-rs/bcrypt": ["credential"],
  commander: ["cli"],
  pino: ["cli", "transport"],
  "prom-client": ["observability"],
  "@opentelemetry/api": ["observability"],
  "@opentelemetry/core": ["observability"],
  "@opentelemetry/exporter-trace-otlp-proto": ["observability"],
  "@opentelemetry/resources": ["observability"],
  "@opentelemetry/sdk-trace": ["observability"],
};

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
  return specifiers.map((specifier) => ({ file, from: folderOf(file), target: targetOf(file, specifier) }));
}

function folderOf(file: string): string {
  return file.split("/")[0] ?? file;
}

/** Returns `src:keys` for a folder of src/, `gen`, `node:x`, or the name of a package. */
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
  return path.startsWith("src/") ? `src:${folderOf(path.slice("src/".length))}` : (path.split("/")[0] ?? path);
}

function violation({ file, from, target }: Import): string[] {
  const allowed = RESTRICTED[target];
  if (allowed !== undefined && !allowed.includes(from))
    return [`${file} imports ${target}, which is restricted to ${allowed.join(", ")}`];
  if (!target.startsWith("src:")) return [];
  const to = target.slice("src:".length);
  const [here, there] = [LAYERS[from], LAYERS[to]];
  if (here === undefined || there === undefined) return [`${file}: ${from} or ${to} has no layer`];
  if (from === to || there < here) return [];
  return [`${file} (layer ${here}) imports ${to} (layer ${there})`];
}

test("a folder imports only from lower layers", () => {
  const imports = sourceFiles().flatMap(importsOf);
  expect(imports.length).toBeGreaterThan(300);
  expect(imports.flatMap(violation)).toEqual([]);
});

test("a violation is detected", () => {
  const up = { file: "keys/x.ts", from: "keys", target: "src:postgres" };
  const sideways = { file: "keys/x.ts", from: "keys", target: "src:verify" };
  const kept = { file: "keys/x.ts", from: "keys", target: "fastify" };
  expect([up, sideways, kept].flatMap(violation)).toHaveLength(3);
});

test("only server/database-server.ts uses the embedded database", () => {
  const users = sourceFiles()
    .flatMap(importsOf)
    .filter(({ from, target }) => target === "src:embedded-postgres" && from !== "embedded-postgres");
  expect([...new Set(users.map(({ file }) => file))]).toEqual(["server/database-server.ts"]);
});

test("the client imports nothing of the server, and the verifier only the client and tokens", () => {
  const imports = sourceFiles().flatMap(importsOf);
  const ours = (place: string) =>
    [...new Set(imports.filter(({ from }) => from === place).map(({ target }) => target))]
      .filter((target) => /^(?:src|node):/.test(target) && target !== `src:${place}`)
      .sort();
  expect(ours("client")).toEqual(["src:lib"]);
  expect(ours("verifier")).toEqual(["node:http", "src:client", "src:lib", "src:token"]);
});

test("only server/config reads the environment", () => {
  const readers = sourceFiles().filter((file) => /\bprocess\.env\b/.test(readFileSync(join(src, file), "utf8")));
  expect(readers).toEqual(["server/config/config.ts"]);
});

test("only lib/clock.ts reads the clock", () => {
  const readers = sourceFiles().filter((file) =>
    /\bDate\.now\(\)|new Date\(\)/.test(readFileSync(join(src, file), "utf8")),
  );
  expect(readers).toEqual(["lib/clock.ts"]);
});

/** The rows of "Internals of other packages that we rely on" in docs/architecture.md. */
function internals(): { name: string; version: string; files: string[] }[] {
  const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
  const section = page.split("## Internals of other packages that we rely on")[1]?.split("\n## ")[0] ?? "";
  return [...section.matchAll(/^\| `([^`]+)` \| ([^ |]+) \|(.*)$/gm)].map(([, name = "", version = "", rest = ""]) => ({
    name,
    version,
    files: [...rest.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, file = ""]) => file),
  }));
}

test("the list of package internals has the installed versions, with a source file and a test each", () => {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const rows = internals();
  expect(rows.length).toBeGreaterThan(8);
  expect(rows.map(({ name, version }) => `${name} ${version}`)).toEqual(
    rows.map(({ name }) => `${name} ${lock.packages[`node_modules/${name}`].version}`),
  );
  for (const { files } of rows) {
    expect(files.map((file) => file.split("/")[0])).toEqual(expect.arrayContaining(["src", "test"]));
    for (const file of files) expect([file, existsSync(join(root, file))]).toEqual([file, true]);
  }
});

test("only listed files use package internals", () => {
  const listed = new Set(internals().flatMap(({ files }) => files));
  const INTERNALS =
    /\bsymbols\b.*"pino"|"internalMessage"|\.listeners\("|\(postgres 3\.|postgres.*3\.4\.|"httpAllowHalfOpen"/;
  const users = sourceFiles().filter((file) => INTERNALS.test(readFileSync(join(src, file), "utf8")));
  expect(users.length).toBeGreaterThan(5);
  expect(users.filter((file) => !listed.has(`src/${file}`))).toEqual([]);
});
