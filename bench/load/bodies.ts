import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Stage } from "../harness/stage.ts";

/** Writes bodies as `bodies.lua` reads them and resolves with the file's name. */
export async function writeBodies(stage: Stage, bodies: readonly (string | Uint8Array)[]): Promise<string> {
  const file = join(stage.dir, `bodies-${randomUUID()}`);
  await writeFile(file, bodies.map((body) => `${Buffer.from(body).toString("hex")}\n`).join(""));
  return file;
}

export function jsonBodies(stage: Stage, bodies: readonly unknown[]): Promise<string> {
  return writeBodies(
    stage,
    bodies.map((body) => JSON.stringify(body)),
  );
}
