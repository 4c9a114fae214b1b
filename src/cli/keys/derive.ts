import {
  DerivedTokenSchema,
  DeriveTokenResponseSchema,
  TokenAlgorithmSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { parseJson } from "../../lib/json.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { restJson } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";
import { enumOf, pairs } from "./option-values.ts";

export interface DeriveOptions extends RemoteOptions, CredentialOptions, SecretOptions {
  readonly algorithm: string;
  readonly ttl?: string;
  readonly scope?: string[];
  readonly claim?: readonly string[];
}

export async function derive(options: DeriveOptions): Promise<void> {
  const { ttl, scope: scopes = [] } = options;
  const algorithm = enumOf(TokenAlgorithmSchema, "TOKEN_ALGORITHM_", options.algorithm);
  const customClaims = options.claim === undefined ? undefined : claims(options.claim);
  const { apiKeys } = await openRemote(options);
  const credential = await readCredential(options);
  await outputSecret(options, async () => {
    const answer = await apiKeys.deriveToken({ credential, algorithm, ttl, scopes, customClaims });
    const { token = "", ...record } = answer.token === undefined ? {} : restJson(DerivedTokenSchema, answer.token);
    return { secret: String(token), answer: restJson(DeriveTokenResponseSchema, answer), record };
  });
}

/** Parses a value that is JSON, such as 5 or true; any other is a string. */
function claims(texts: readonly string[]) {
  const entries = Object.entries(pairs("--claim", texts));
  return Object.fromEntries(entries.map(([name, text]) => [name, parseJson(text) ?? text]));
}
