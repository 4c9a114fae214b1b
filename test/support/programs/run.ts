import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program with its arguments, the folder to run it in, and what it needs of the environment besides the usual. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Milliseconds after which a program is killed: the first build takes minutes on a machine that has much else to do. */
const LIMIT = 900_000;

/** Runs a program to its end. Rejects if there is no such program. */
export async function run({ program, args, cwd, env = {} }: Command): Promise<Outcome> {
  const options = { cwd, env: { ...process.env, ...env }, timeout: LIMIT };
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, stdout, stderr };
}

/** The same, and throws with what the program wrote if it fails. */
export async function succeed(command: Command): Promise<string> {
  const { status, stdout, stderr } = await run(command);
  if (status === 0) return stdout;
  throw new Error(`${command.program} ${command.args.join(" ")}: exit status ${status}\n${stderr}${stdout}`);
}
