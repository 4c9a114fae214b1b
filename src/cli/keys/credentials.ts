import { TokenAlgorithm } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { parseJson } from "../../lib/json.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { writeMessage } from "../rest-json.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";

export interface VerifyOptions extends RemoteOptions, CredentialOptions {
  /** False bypasses the server's cache. */
  readonly cache: boolean;
}

/** Verifies a credential. The verdict goes to stdout, valid or not, and determines the exit status. */
export async function verify(options: VerifyOptions): Promise<void> {
  const { apiKeys } = await openRemote(options);
  const credential = await readCredential(options);
  const headers = new Headers(options.cache ? {} : { "cache-control": "no-cache" });
  const verdict = await apiKeys.verifyApiKey({ credential }, { headers });
  await writeMessage(verdict, options);
  if (!verdict.isValid) process.exitCode = EXIT_STATUS.invalidCredential;
}

const ALGORITHMS = { jwt: TokenAlgorithm.JWT, macaroon: TokenAlgorithm.MACAROON };

export interface DeriveOptions extends RemoteOptions, CredentialOptions, SecretOptions {
  readonly algorithm: keyof typeof ALGORITHMS;
  readonly ttl?: string;
  readonly scope?: string[];
  /** A value that is JSON, such as 5 or true, is parsed; any other is a string. */
  readonly claim?: Readonly<Record<string, string>>;
}

export async function derive(options: DeriveOptions): Promise<void> {
  const { ttl, scope: scopes = [], claim } = options;
  const algorithm = ALGORITHMS[options.algorithm];
  const claims = claim && Object.entries(claim).map(([name, text]) => [name, parseJson(text) ?? text]);
  const customClaims = claims && Object.fromEntries(claims);
  const { apiKeys } = await openRemote(options);
  const credential = await readCredential(options);
  await outputSecret(options, async () => {
    const answer = await apiKeys.deriveToken({ credential, algorithm, ttl, scopes, customClaims });
    return { secret: answer.token?.token ?? "", answer, record: answer.token };
  });
}
