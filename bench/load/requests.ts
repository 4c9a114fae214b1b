import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Fixture } from "../harness/fixture.ts";

export interface LoadRequest {
  readonly method: string;
  /** Path with query; default: that of the URL. */
  readonly path?: string;
  readonly body?: string | Uint8Array;
}

/** Writes requests in the format of `requests.lua`. Resolves to the path of the file. */
export async function writeRequests(fixture: Fixture, requests: readonly LoadRequest[]): Promise<string> {
  const file = join(fixture.dir, `requests-${randomUUID()}`);
  const lines = requests.map(
    ({ method, path = "-", body = "" }) => `${method} ${path} ${Buffer.from(body).toString("hex")}\n`,
  );
  await writeFile(file, lines.join(""));
  return file;
}

/** Writes POST requests with these bodies to the path of the URL. */
export function writeBodies(fixture: Fixture, bodies: readonly (string | Uint8Array)[]): Promise<string> {
  return writeRequests(
    fixture,
    bodies.map((body) => ({ method: "POST", body })),
  );
}

export function jsonBodies(fixture: Fixture, bodies: readonly unknown[]): Promise<string> {
  return writeBodies(
    fixture,
    bodies.map((body) => JSON.stringify(body)),
  );
}
