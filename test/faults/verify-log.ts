import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run, succeed } from "../support/programs/run.ts";
import { COMMAND } from "./clients/signing-rotator.ts";
import type { ClusterNode } from "./cluster.ts";

/** Stores the checkpoint of the audit log as `keyhold audit checkpoint` prints it, and returns its file. */
export async function keepCheckpoint(node: ClusterNode, dir: string): Promise<string> {
  const file = join(dir, "checkpoint");
  await writeFile(file, await succeed(auditCommand(node, "checkpoint")));
  return file;
}

/** Returns what `keyhold audit verify` finds wrong in the log of a node; `checkpoint` is the file of an earlier one. */
export async function verifyLog(node: ClusterNode, checkpoint: string | null): Promise<string[]> {
  const options = checkpoint === null ? [] : ["--checkpoint", checkpoint];
  const { status, stderr } = await run(auditCommand(node, "verify", ...options));
  return status === 0 ? [] : [`keyhold audit verify: ${stderr}`];
}

function auditCommand({ url }: ClusterNode, ...args: readonly string[]) {
  return { program: process.execPath, args: [COMMAND, "audit", ...args], cwd: ".", env: { KEYHOLD_URL: url } };
}
