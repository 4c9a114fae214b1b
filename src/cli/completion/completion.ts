import type { Command } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { write } from "../output.ts";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { type Node, nodesOf } from "./tree.ts";
import { zshScript } from "./zsh.ts";

const SCRIPTS: ReadonlyMap<string, (nodes: readonly Node[]) => string> = new Map([
  ["bash", bashScript],
  ["zsh", zshScript],
  ["fish", fishScript],
]);

/** Prints the completion script of a shell, generated from the command tree. */
export async function printCompletion(program: Command, shell: string): Promise<void> {
  const script = SCRIPTS.get(shell);
  if (script === undefined) throw invalidArgument("shell", `must be one of ${[...SCRIPTS.keys()].join(", ")}`);
  await write(script(nodesOf(program)));
}
