import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Stage } from "../harness/stage.ts";

export interface LoadRequest {
  readonly method: string;
  /** With the query; without it the path of the URL. */
  readonly path?: string;
  readonly body?: string | Uint8Array;
}

/** Writes requests as `requests.lua` reads them and resolves with the file's name. */
export async function writeRequests(stage: Stage, requests: readonly LoadRequest[]): Promise<string> {
  const file = join(stage.dir, `requests-${randomUUID()}`);
  const lines = requests.map(
    ({ method, path = "-", body = "" }) => `${method} ${path} ${Buffer.from(body).toString("hex")}\n`,
  );
  await writeFile(file, lines.join(""));
  return file;
}

/** Writes requests with these bodies to the path of the URL. */
export function writeBodies(stage: Stage, bodies: readonly (string | Uint8Array)[]): Promise<string> {
  return writeRequests(
    stage,
    bodies.map((body) => ({ method: "POST", body })),
  );
}

export function jsonBodies(stage: Stage, bodies: readonly unknown[]): Promise<string> {
  return writeBodies(
    stage,
    bodies.map((body) => JSON.stringify(body)),
  );
}
