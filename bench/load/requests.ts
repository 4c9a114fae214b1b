import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Fixture } from "../harness/fixture.ts";

export interface LoadRequest {
  readonly method: string;
  /** Path with query; default: that of the URL. */
  readonly path?: string;
  readonly body?: string | Uint8Array;
  /** In addition to those of all requests. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Writes requests in the format of `requests.lua`. Resolves to the path of the file. */
export async function writeRequests(fixture: Fixture, requests: readonly LoadRequest[]): Promise<string> {
  const file = join(fixture.dir, `requests-${randomUUID()}`);
  const lines = requests.map(({ method, path = "-", body = "", headers = {} }) => {
    const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
    return `${method} ${path} ${hex(body)} ${hex(own.join(""))}\n`;
  });
  await writeFile(file, lines.join(""));
  return file;
}

function hex(content: string | Uint8Array): string {
  return Buffer.from(content).toString("hex");
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
