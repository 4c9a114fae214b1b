import {
  DerivedTokenSchema,
  DeriveTokenResponseSchema,
  TokenAlgorithmSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { parseJson } from "../../lib/json.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { restJson } from "../record.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { makeSecret, type SecretOptions } from "../secret-output.ts";
import { enumOf } from "./enum-of.ts";
import { pairs } from "./pairs.ts";

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
  await makeSecret(options, async () => {
    const answer = await apiKeys.deriveToken({ credential, algorithm, ttl, scopes, customClaims });
    const { token = "", ...record } = answer.token === undefined ? {} : restJson(DerivedTokenSchema, answer.token);
    return { secret: String(token), answer: restJson(DeriveTokenResponseSchema, answer), record };
  });
}

/** A value that is JSON is taken as that, such as 5 or true; any other as text. */
function claims(texts: readonly string[]) {
  const entries = Object.entries(pairs("--claim", texts));
  return Object.fromEntries(entries.map(([name, text]) => [name, parseJson(text) ?? text]));
}
