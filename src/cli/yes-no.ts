import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { note } from "./output.ts";

/** Asks a question on the terminal. Returns whether the answer is `y` or `yes`; Ctrl+C, Ctrl+D and the end of input are no answer. */
export async function askYesNo(question: string): Promise<boolean> {
  const answer = await ask(`${question} [y/N] `);
  if (answer === null) note("");
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

async function ask(question: string): Promise<string | null> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // If stderr is not a terminal, Node leaves the question pending at the end of input, and the process would exit with 0.
  const closed = once(lines, "close").then(() => null);
  try {
    return await Promise.race([lines.question(question).catch(() => null), closed]);
  } finally {
    lines.close();
  }
}
