import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildGo } from "../../harness/go.ts";
import { type ServerProcess, startServer } from "../../harness/server.ts";
import { once, type Stage } from "../../harness/stage.ts";
import type { Json } from "../../subject/client.ts";

/** A credential, and the verdict that the service gave on it. */
export interface KnownKey {
  readonly credential: string;
  readonly verdict: Json;
}

const program = once((stage) => buildGo(stage, import.meta.dirname));

/** Starts the Go program of this folder, on one core, with these keys in its memory. */
export async function startGo(
  stage: Stage,
  protocol: "rest" | "grpc",
  keys: readonly KnownKey[],
): Promise<ServerProcess> {
  const file = join(stage.dir, `keys-${protocol}`);
  await writeFile(file, keys.map((key) => `${JSON.stringify(key)}\n`).join(""));
  return startServer(stage, {
    command: [await program(stage), protocol],
    environment: { KEYS: file, GOMAXPROCS: "1" },
    portVariable: "PORT",
    readyPath: null,
  });
}
