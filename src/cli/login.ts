import { resolve } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { invalidArgument } from "../domain/errors.ts";
import { readClientConfig } from "../server/config/config.ts";
import { writeContext } from "./context.ts";
import { writeResult } from "./output.ts";
import { openRemote, type RemoteOptions } from "./remote.ts";

/** Stores URL, token file and certificates for later commands, once the server has accepted the token. */
export async function login(options: RemoteOptions): Promise<void> {
  const config = readClientConfig();
  const { contextFile } = config;
  if (contextFile === null) throw invalidArgument("HOME", "is required: the context is stored in the home directory");
  const pathOf = (option: string | undefined, variable: string | null) => {
    const path = option ?? variable;
    return path === null ? null : resolve(path);
  };
  const tokenFile = pathOf(options.tokenFile, config.tokenFile);
  if (tokenFile === null && config.token !== null)
    throw invalidArgument("--token-file", "is required: the context stores a token file path, not the token");
  const { issuedApiKeys, url } = await openRemote(options);
  await issuedApiKeys.listIssuedApiKeys({ pageSize: 1 }).catch((error: unknown) => {
    // A token with other scopes is valid too.
    if (!(error instanceof ConnectError) || error.code !== Code.PermissionDenied) throw error;
  });
  await writeContext(contextFile, { url, tokenFile, caFile: pathOf(options.caFile, config.caFile) });
  await writeResult(options, { url, file: contextFile }, `Commands now use ${url} (saved in ${contextFile}).`);
}
