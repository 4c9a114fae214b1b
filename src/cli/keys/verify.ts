import { VerifyApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { restJson, writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";

export interface VerifyOptions extends RemoteOptions, CredentialOptions {
  /** False bypasses the server's cache. */
  readonly cache: boolean;
}

/** Verifies a credential. The verdict goes to stdout, valid or not, and determines the exit status. */
export async function verify(options: VerifyOptions): Promise<void> {
  const remote = await openRemote(options);
  const credential = await readCredential(options);
  const headers = new Headers(options.cache ? {} : { "cache-control": "no-cache" });
  const verdict = await remote.apiKeys.verifyApiKey({ credential }, { headers });
  await writeObject(restJson(VerifyApiKeyResponseSchema, verdict), options);
  if (!verdict.isValid) process.exitCode = EXIT_STATUS.invalidCredential;
}
