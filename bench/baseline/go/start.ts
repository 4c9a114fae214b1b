import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Fixture, once } from "../../harness/fixture.ts";
import { buildGo } from "../../harness/go.ts";
import { type ServerProcess, startServer } from "../../harness/server.ts";
import type { Json } from "../../subject/client.ts";

/** A credential and the service's verdict on it. */
export interface KnownKey {
  readonly credential: string;
  readonly verdict: Json;
}

const program = once((fixture) => buildGo(fixture, import.meta.dirname));

/** Writes the file that programs with keys in memory read. Resolves to its path. */
export async function writeKeys(fixture: Fixture, keys: readonly KnownKey[]): Promise<string> {
  const file = join(fixture.dir, `keys-${randomUUID()}`);
  await writeFile(file, keys.map((key) => `${JSON.stringify(key)}\n`).join(""));
  return file;
}

/** Starts the Go program of this folder on one core, with these keys in memory. */
export async function startGo(
  fixture: Fixture,
  protocol: "rest" | "grpc",
  keys: readonly KnownKey[],
): Promise<ServerProcess> {
  return startServer(fixture, {
    command: [await program(fixture), protocol],
    environment: { KEYS: await writeKeys(fixture, keys), GOMAXPROCS: "1" },
    portVariable: "PORT",
    readyPath: null,
  });
}
