import { readFile } from "node:fs/promises";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { readClientConfig, serverUrl } from "../config.ts";
import { invalidArgument } from "../errors.ts";
import type { OutputOptions } from "./output.ts";

/** Options of every command that calls a running server. */
export interface RemoteOptions extends OutputOptions {
  readonly url?: string;
  readonly tokenFile?: string;
}

/** A running server, a client for each of its services. */
export interface Remote {
  readonly url: string;
  readonly issued: Client<typeof IssuedApiKeysService>;
  readonly imported: Client<typeof ImportedApiKeysService>;
  readonly keys: Client<typeof ApiKeysService>;
  readonly self: Client<typeof SelfServiceService>;
}

/** After this a call has failed, in milliseconds. The server gives a statement 10 s. */
const TIMEOUT = 60_000;

/** The server of the options or of the environment. Nothing is sent before the first call. */
export async function openRemote(options: RemoteOptions): Promise<Remote> {
  const config = readClientConfig();
  const baseUrl = options.url === undefined ? config.url : serverUrl("--url", options.url);
  const file = options.tokenFile ?? config.tokenFile;
  const token = file === null ? config.token : (await readFile(file, "utf8")).trim();
  const interceptors = token === null ? [] : [bearer(token)];
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", defaultTimeoutMs: TIMEOUT, interceptors });
  return {
    url: baseUrl,
    issued: createClient(IssuedApiKeysService, transport),
    imported: createClient(ImportedApiKeysService, transport),
    keys: createClient(ApiKeysService, transport),
    self: createClient(SelfServiceService, transport),
  };
}

/** RFC 6750 §2.1. */
function bearer(token: string): Interceptor {
  // Else an error of the HTTP client would quote it.
  if (!/^[!-~]+$/.test(token)) throw invalidArgument("token", "must be one token of visible ASCII characters");
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
