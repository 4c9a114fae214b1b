import type { Command } from "commander";
import { write } from "../output.ts";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { nodesOf } from "./tree.ts";
import { zshScript } from "./zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** Prints the completion script of a shell, generated from the command tree. */
export async function printCompletion(program: Command, shell: keyof typeof SCRIPTS): Promise<void> {
  await write(SCRIPTS[shell](nodesOf(program)));
}
