import { readFile } from "node:fs/promises";
import { createKeyholdClient, type KeyholdClient } from "../client/client.ts";
import { invalidArgument } from "../domain/errors.ts";
import { readClientConfig } from "../server/config/config.ts";
import { serverUrl } from "../server/config/values.ts";
import type { OutputOptions } from "./output.ts";
import { trustCertificates } from "./trust.ts";

/** Options of every command that calls a running server. */
export interface RemoteOptions extends OutputOptions {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
}

/** A running server. */
export interface Remote extends KeyholdClient {
  readonly url: string;
}

/** After this a call has failed, in milliseconds. The server gives a statement 10 s. */
const TIMEOUT = 60_000;

/**
 * The server of the options or of the environment. Nothing is sent before the first call. A call is made once: who runs a command, or
 * a script that does, hears at once that the server is away.
 */
export async function openRemote(options: RemoteOptions): Promise<Remote> {
  const config = readClientConfig();
  const baseUrl = options.url === undefined ? config.url : serverUrl("--url", options.url);
  if (options.caFile !== undefined) await trustCertificates("--ca-file", options.caFile);
  else if (config.caFile !== null) await trustCertificates("KEYHOLD_CA_FILE", config.caFile);
  const file = options.tokenFile ?? config.tokenFile;
  const token = file === null ? config.token : (await readFile(file, "utf8")).trim();
  return { ...clientOf(baseUrl, token ?? undefined), url: baseUrl };
}

/** The address was looked at already, so a `TypeError` is about the token, and says what it has to be. */
function clientOf(baseUrl: string, token: string | undefined): KeyholdClient {
  try {
    return createKeyholdClient({ baseUrl, timeoutMs: TIMEOUT, retry: false, ...(token !== undefined && { token }) });
  } catch (error) {
    if (error instanceof TypeError) throw invalidArgument("token", error.message.replace(/^token: /, ""));
    throw error;
  }
}
