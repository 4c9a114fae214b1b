import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

/** Runs a program and resolves to its standard output. Rejects with its output if it fails. */
export async function run(
  command: readonly [string, ...string[]],
  environment: NodeJS.ProcessEnv = {},
): Promise<string> {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  const closed = once(child, "close");
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  if (status === 0) return stdout;
  throw new Error(`${program} ended with status ${status}: ${stderr}${stdout}`);
}
