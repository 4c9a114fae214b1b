import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { invalidArgument } from "../domain/errors.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { EXIT_STATUS } from "./exit-status.ts";
import { note, write } from "./output.ts";
import { shownPath } from "./redact.ts";

export interface CredentialOptions {
  /** `-` is stdin. */
  readonly credentialFile?: string;
}

/**
 * Reads a secret from a file or stdin; never from an argument, which other users of the machine can read. On a terminal it prompts without
 * echo. One trailing line break is removed.
 */
export async function readCredential(
  { credentialFile = "-" }: CredentialOptions,
  label = "Credential",
): Promise<string> {
  const fromStdin = credentialFile === "-";
  if (fromStdin && process.stdin.isTTY) return required(await prompt(`${label}: `));
  const bytes = fromStdin
    ? Buffer.concat(await Array.fromAsync(process.stdin))
    : await readInput("--credential-file", credentialFile);
  return required(textOf(bytes, "credential", "must be UTF-8"));
}

/** Reads a secret text, such as a pepper, from the file of an option. One trailing line break is removed. Throws `INVALID_ARGUMENT`. */
export async function readSecretFile(option: string, path: string): Promise<string> {
  return textOf(await readInput(option, path), option, `${shownPath(path)} must be UTF-8`);
}

/** Removes one trailing line break. */
function textOf(bytes: Buffer, field: string, problem: string): string {
  const text = decodeUtf8(bytes);
  if (text === undefined) throw invalidArgument(field, problem);
  return text.replace(/\r?\n$/, "");
}

/** Reads the file of an option or variable. Throws `INVALID_ARGUMENT` naming it, and the path unless it may be a secret. */
export function readInput(option: string, path: string): Promise<Buffer> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw invalidArgument(option, `${shownPath(path)} cannot be read (${error.code})`);
  });
}

function required(text: string): string {
  if (text === "") throw invalidArgument("credential", "must not be empty");
  return text;
}

/** Prompts on the terminal, with an output that discards the echo. */
async function prompt(question: string): Promise<string> {
  await write(question, process.stderr);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
  const interrupt = new AbortController();
  lines.once("SIGINT", () => interrupt.abort());
  try {
    return await lines.question("", { signal: interrupt.signal });
  } catch {
    process.exit(EXIT_STATUS.interrupted);
  } finally {
    lines.close();
    note("");
  }
}
