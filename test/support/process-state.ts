import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Probed } from "./process-probe.ts";

const PROBE = resolve(import.meta.dirname, "process-probe.ts");

/** Returns the environment of a server whose processes `stateOf` may ask. Their sockets are in this folder, which must exist. */
export function probedIn(dir: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${PROBE}`, PROBE_DIR: dir };
}

/** Returns what a process retains after a full garbage collection, and the number of its open files. */
export async function stateOf(dir: string, pid: number): Promise<Probed & { readonly files: number }> {
  const state: Probed = JSON.parse(await text(connect(join(dir, String(pid)))));
  return { ...state, files: (await readdir(`/proc/${pid}/fd`)).length };
}
