import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

/** The layer of every folder of src/ (docs/architecture.md). A folder imports from lower layers and from itself. */
const LAYERS: Readonly<Record<string, number>> = {
  lib: 0,
  domain: 1,
  credential: 2,
  token: 2,
  hashing: 2,
  filter: 2,
  paging: 2,
  keys: 3,
  verify: 3,
  signing: 3,
  audit: 3,
  webhooks: 3,
  usage: 3,
  actors: 3,
  cluster: 3,
  limits: 3,
  console: 4,
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

/** The rooms of a folder of src/, ordered like `LAYERS`; "." is its own files. A room imports from lower rooms and from itself. */
const ROOMS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  postgres: {
    connection: 0,
    migrations: 1,
    cluster: 1,
    keys: 2,
    lists: 3,
    hashes: 3,
    signing: 3,
    audit: 3,
    webhooks: 3,
    limits: 3,
    usage: 3,
    ".": 4,
  },
  transport: {
    wire: 0,
    listener: 1,
    pipeline: 1,
    rest: 2,
    connect: 2,
    gateways: 2,
    "fast-path": 3,
    services: 4,
    ".": 5,
  },
};

/** Packages and generated code, and the only folders that may import them. */
const RESTRICTED: Readonly<Record<string, readonly string[]>> = {
  gen: ["api", "transport", "cli", "client", "verifier"],
  jose: ["token", "verifier", "console"],
  oauth4webapi: ["console"],
  postgres: ["postgres"],
  fastify: ["transport", "verifier", "server", "console"],
  "@fastify/cors": ["transport"],
  "@connectrpc/connect": ["api", "transport", "client", "verifier", "cli"],
  "@connectrpc/connect-node": ["transport"],
  "@connectrpc/connect-fastify": ["transport"],
  "@connectrpc/connect-web": ["client"],
  "@bufbuild/protobuf": ["api", "transport", "cli", "client", "verifier"],
  "@bufbuild/protovalidate": [],
  "embedded-postgres": ["embedded-postgres"],
  "@node-rs/bcrypt": ["hashing"],
  commander: ["cli"],
  pino: ["cli", "transport"],
  "prom-client": ["observability"],
  standardwebhooks: ["webhooks"],
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
  /** The imported file of src/, relative to it. */
  readonly path?: string;
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
  return specifiers.map((specifier) => {
    const path = relative(src, resolve(src, dirname(file), specifier));
    const isOurs = specifier.startsWith(".") && !path.startsWith("..");
    return { file, from: folderOf(file), target: targetOf(file, specifier), ...(isOurs && { path }) };
  });
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

/** Returns `keys` for `postgres/keys/rows.ts`, and "." for `postgres/key-store.ts`. */
function roomOf(path: string): string {
  const [, room = "", ...inner] = path.split("/");
  return inner.length === 0 ? "." : room;
}

/** An import between the rooms of one folder that the order of its rooms does not allow. */
function roomViolation({ file, from, path }: Import): string[] {
  const rooms = ROOMS[from];
  if (rooms === undefined || path === undefined || folderOf(path) !== from) return [];
  const [here, there] = [roomOf(file), roomOf(path)];
  const [low, high] = [rooms[there], rooms[here]];
  if (low === undefined || high === undefined) return [`${file}: the room ${here} or ${there} has no place`];
  return here === there || low < high ? [] : [`${file} imports ${path}, which is in no lower room`];
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

test("a room imports only from lower rooms", () => {
  const imports = sourceFiles().flatMap(importsOf);
  const between = imports.filter(({ from, path }) => ROOMS[from] !== undefined && path !== undefined);
  expect(between.length).toBeGreaterThan(100);
  expect(imports.flatMap(roomViolation)).toEqual([]);
  const up = { file: "postgres/keys/x.ts", from: "postgres", target: "", path: "postgres/key-store.ts" };
  const sideways = { file: "postgres/lists/x.ts", from: "postgres", target: "", path: "postgres/hashes/x.ts" };
  expect([up, sideways].flatMap(roomViolation)).toHaveLength(2);
});

test("a file of transport/ depends on few other rooms", () => {
  const dependencies = sourceFiles()
    .flatMap(importsOf)
    .filter(({ from, path }) => from === "transport" && path !== undefined && folderOf(path) === from)
    // The wiring, transport.ts and server.ts, imports from every room.
    .filter(({ file, path = "" }) => roomOf(file) !== "." && roomOf(file) !== roomOf(path))
    .map(({ file, path = "" }) => `${file} -> ${roomOf(path)}`);
  expect(new Set(dependencies).size).toBeLessThanOrEqual(70);
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

test("only cli/output.ts writes to a terminal", () => {
  const writers = sourceFiles().filter((file) =>
    /(?<![./\w])console\.\w+\(|\bprocess\.std(?:out|err)\.write\b/.test(readFileSync(join(src, file), "utf8")),
  );
  expect(writers).toEqual([]);
});

test("only lib/clock.ts reads the clock", () => {
  const readers = sourceFiles().filter((file) =>
    /\bDate\.now\(\)|new Date\(\)/.test(readFileSync(join(src, file), "utf8")),
  );
  expect(readers).toEqual(["lib/clock.ts"]);
});

/** Reactions and listeners that stay until a promise settles, a signal aborts or an emitter is gone, which may be after the call. */
const REACTION = new RegExp(
  [
    /\bPromise\.(?:race|any)\(|\bAbortSignal\.any\(|\bwithTimeout\(\s*[\w.#]+(?=,)/,
    /(?<![)\]}.\w#?])[\w.#]+\??\.(?:then|catch|finally)\(/,
    /\b(?:process|cluster|server|socket|session|worker|child|signal|\w+Signal)\??\.(?:on|once|addEventListener)\(/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "g",
);

/** The number of `REACTION`s in each file, after each was checked: none outlives its call in something that lives longer. */
const CHECKED_REACTIONS = {
  "once in the life of a process, server or worker": `cli/import/run 1, cli/log 1, cli/signals 3, cli/uncaught 2, cli/keys/bulk 1,
    cli/workers/reassign-connections 3, cli/workers/worker-pool 2, cli/workers/worker-process 6, cli/workers/worker 5,
    hashing/slow/hash-worker 2, embedded-postgres/pid-file 2, embedded-postgres/postmaster 2, embedded-postgres/shutdown 2,
    lib/supervise 5, server/start 1, transport/transport 1`,
  "once in the life of a connection or session": `embedded-postgres/socket 2, postgres/connection/client-socket 1, postgres/cluster/notify-probe 1,
    postgres/connection/primary 4, transport/listener/client-error 1, transport/fast-path/http1 2, transport/listener/acceptor 5,
    transport/listener/closing 2, transport/listener/http2 6, transport/listener/server 3`,
  "removed at the end of the call": `audit/feed 1, client/streams 1, postgres/cluster/leases 1, lib/sleep 1, transport/fast-path/stream-verify 1, transport/wire/deadline 1`,
  "the promise or signal is of the same call": `cluster/barriers 1, cluster/membership 2,
    cluster/renewals 1, embedded-postgres/ownership 1, keys/bulk 1, lib/maybe-promise 2, lib/race-signal 2, lib/with-timeout 2,
    postgres/cluster/change-committer 1, postgres/cluster/group-commit 1, postgres/cluster/propagate 1, postgres/keys/copy-rows 1,
    transport/pipeline/access-log 1, transport/pipeline/call-pipeline 2, transport/pipeline/concurrency-limiter 1, transport/fast-path/call 2,
    transport/connect/rpc 1`,
  "settles within a statement or a request": `hashing/hash-formats 1, limits/borrower 2, server/read-probe 1, signing/signing 1,
    verifier/verdict-cache 1`,
  "a composite of signals, which Node holds weakly": `webhooks/sending/sender 1, transport/services/health 1,
    transport/pipeline/server-stream 2`,
};

test("no promise, signal or emitter that outlives a call keeps a reaction of it", () => {
  const found = sourceFiles().flatMap((file) => {
    const count = [...readFileSync(join(src, file), "utf8").matchAll(REACTION)].length;
    return count === 0 ? [] : [`${file.replace(/\.ts$/, "")} ${count}`];
  });
  const checked = Object.values(CHECKED_REACTIONS).flatMap((files) => files.split(/,\s+/));
  expect(found.sort(), "check each new reaction, then update CHECKED_REACTIONS").toEqual(checked.sort());
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
