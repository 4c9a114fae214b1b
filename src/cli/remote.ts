import { X509Certificate } from "node:crypto";
import tls from "node:tls";
import { createKeyholdClient, type KeyholdClient } from "../client/client.ts";
import { invalidArgument } from "../domain/errors.ts";
import { readClientConfig } from "../server/config/config.ts";
import { serverUrl } from "../server/config/values.ts";
import { readContext } from "./context.ts";
import { readInput } from "./credential-input.ts";
import type { OutputOptions } from "./output.ts";
import { shownPath } from "./redact.ts";

export interface RemoteOptions extends OutputOptions {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
}

export type Remote = Awaited<ReturnType<typeof openRemote>>;

/** Timeout of a call in milliseconds. The server's statement timeout is 10 s. */
const TIMEOUT = 60_000;

/**
 * Returns a client for the server of the options or environment. Nothing is sent before the first call. Calls are not retried, so that an
 * unreachable server is reported at once.
 */
export async function openRemote(options: RemoteOptions) {
  const config = readClientConfig();
  const context = config.contextFile === null ? null : await readContext(config.contextFile);
  const ofServer = options.url === undefined ? config.url : serverUrl("--url", options.url);
  const baseUrl = ofServer ?? context?.url ?? "http://127.0.0.1:4420";
  // The token of a context is sent to its server only.
  const stored = context?.url === baseUrl ? context : null;
  const caFile = firstFile({
    "--ca-file": options.caFile,
    KEYHOLD_CA_FILE: config.caFile,
    "keyhold login": stored?.caFile,
  });
  if (caFile !== undefined) await trustCertificates(...caFile);
  const tokenFile = firstFile({
    "--token-file": options.tokenFile,
    KEYHOLD_TOKEN_FILE: config.tokenFile,
    "keyhold login": config.token === null ? stored?.tokenFile : null,
  });
  const token = tokenFile === undefined ? config.token : (await readInput(...tokenFile)).toString("utf8").trim();
  return {
    ...clientOf(baseUrl, token ?? undefined),
    url: baseUrl,
    get: (path: string) => get(`${baseUrl}${path}`, token),
  };
}

/** Reads a resource that is no RPC. */
async function get(url: string, token: string | null): Promise<Uint8Array> {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT) });
  const bytes = await response.bytes();
  if (response.status === 200) return bytes;
  throw new Error(`the server answered ${response.status} for ${new URL(url).pathname}`);
}

/** Returns the first file that is set, with the name of its source for errors. */
function firstFile(files: Readonly<Record<string, string | null | undefined>>) {
  return Object.entries(files).find((entry): entry is [name: string, file: string] => typeof entry[1] === "string");
}

/** The URL is validated before, so a `TypeError` is about the token. */
function clientOf(baseUrl: string, token: string | undefined): KeyholdClient {
  try {
    return createKeyholdClient({ baseUrl, timeoutMs: TIMEOUT, retry: false, ...(token !== undefined && { token }) });
  } catch (error) {
    if (error instanceof TypeError) throw invalidArgument("token", error.message.replace(/^token: /, ""));
    throw error;
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/**
 * Trusts the certificates of a PEM file in this process, in addition to those of Node and `NODE_EXTRA_CA_CERTS`. Throws
 * `INVALID_ARGUMENT` naming `name` if the file has none.
 */
async function trustCertificates(name: string, file: string): Promise<void> {
  const text = (await readInput(name, file)).toString("utf8");
  const certificates = text.match(CERTIFICATE) ?? [];
  try {
    // Throws on a text that is not a certificate.
    for (const certificate of certificates.length === 0 ? [text] : certificates) new X509Certificate(certificate);
  } catch {
    throw invalidArgument(name, `${shownPath(file)} contains no certificate in PEM format`);
  }
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), ...certificates]);
}
