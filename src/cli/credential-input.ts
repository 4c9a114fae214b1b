import { open, readFile, unlink } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { invalidArgument } from "../domain/errors.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { EXIT_STATUS } from "./exit-status.ts";

export interface CredentialOptions {
  /** `-` is standard input. */
  readonly credentialFile?: string;
}

/**
 * A secret, from the file or from standard input, never from the arguments, which every user of the machine can read. On a
 * terminal it is asked for, without echo. One line end behind it is not part of it.
 */
export async function readCredential(
  { credentialFile = "-" }: CredentialOptions,
  label = "Credential",
): Promise<string> {
  const fromStdin = credentialFile === "-";
  if (fromStdin && process.stdin.isTTY) return required(await prompt(`${label}: `));
  const bytes = fromStdin ? Buffer.concat(await Array.fromAsync(process.stdin)) : await readFile(credentialFile);
  const text = decodeUtf8(bytes);
  if (text === undefined) throw invalidArgument("credential", "must be UTF-8");
  return required(text.replace(/\r?\n$/, ""));
}

function required(text: string): string {
  if (text === "") throw invalidArgument("credential", "must not be empty");
  return text;
}

/** Asks on the terminal, with an output that swallows what is typed. */
async function prompt(question: string): Promise<string> {
  process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
  const given = new AbortController();
  lines.once("SIGINT", () => given.abort());
  try {
    return await lines.question("", { signal: given.signal });
  } catch {
    process.exit(EXIT_STATUS.interrupted);
  } finally {
    lines.close();
    process.stderr.write("\n");
  }
}

/** Where a secret that was made goes. */
export interface SecretFile {
  write(secret: string): Promise<void>;
  /** Removes the file when no secret came. */
  abandon(): Promise<void>;
}

/** Makes the file, for its owner alone, before the secret is made: a secret that cannot be kept is lost. It must not exist. */
export async function createSecretFile(path: string): Promise<SecretFile> {
  const file = await open(path, "wx", 0o600);
  return {
    write: async (secret) => {
      await file.writeFile(`${secret}\n`);
      await file.sync();
      await file.close();
    },
    abandon: async () => {
      await file.close();
      await unlink(path);
    },
  };
}
