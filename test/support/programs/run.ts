import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program with its arguments, its folder, and additional environment variables. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Milliseconds after which a program is killed. The first build takes minutes on a busy machine. */
export const LIMIT = 900_000;

/** Runs a program and resolves when it has exited. Rejects if the program does not exist. */
export async function run({ program, args, cwd, env = {} }: Command): Promise<Outcome> {
  const options = { cwd, env: { ...process.env, ...env }, timeout: LIMIT };
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, stdout, stderr };
}

/** Runs a program and rejects with its output if it fails. */
export async function succeed(command: Command): Promise<string> {
  const { status, stdout, stderr } = await run(command);
  if (status === 0) return stdout;
  throw new Error(`${command.program} ${command.args.join(" ")}: exit status ${status}\n${stderr}${stdout}`);
}
