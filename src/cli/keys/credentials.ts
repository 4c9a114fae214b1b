import { TokenAlgorithm } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../lib/json.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { fieldCell, tableText, write, writeFields, writeJson } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { restJson, writeMessage } from "../rest-json.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";

interface PresentationOptions extends RemoteOptions, CredentialOptions {
  readonly clientIp?: string;
  readonly requireScope?: string[];
  readonly audience?: string;
}

function presentationOf({ clientIp, requireScope: requiredScopes = [], audience }: PresentationOptions) {
  return { clientIp, requiredScopes, audience };
}

/** Verifies a credential, past the server's cache without `cache`. The verdict, valid or not, determines the exit status. */
export async function verify(options: PresentationOptions & { readonly cache: boolean }): Promise<void> {
  const { apiKeys } = await openRemote(options);
  const credential = await readCredential(options);
  const headers = new Headers(options.cache ? {} : { "cache-control": "no-cache" });
  const verdict = await apiKeys.verifyApiKey({ credential, ...presentationOf(options) }, { headers });
  await writeMessage(verdict, options);
  if (!verdict.isValid) process.exitCode = EXIT_STATUS.invalidCredential;
}

/** Explains the verdict on a key or on a credential. The exit status is that of `verify`. */
export async function explain(keyId: string | undefined, options: PresentationOptions): Promise<void> {
  if (keyId !== undefined && options.credentialFile !== undefined) {
    throw invalidArgument("--credential-file", "cannot be used with a key id");
  }
  const { apiKeys } = await openRemote(options);
  const subject = keyId === undefined ? { credential: await readCredential(options) } : { keyId };
  const explanation = await apiKeys.explainApiKey({ ...subject, ...presentationOf(options) });
  const json = restJson(explanation);
  await (options.json === true ? writeJson(json) : writeExplanation(json));
  if (!explanation.isValid) process.exitCode = EXIT_STATUS.invalidCredential;
}

async function writeExplanation({ checks, ...verdict }: JsonObject): Promise<void> {
  await writeFields(verdict);
  const rows = Array.isArray(checks) ? checks.filter(isJsonObject) : [];
  const cells = rows.map((row) => ["name", "result", "detail"].map((name) => fieldCell(name, row[name])));
  await write(["\n", tableText(cells, ["CHECK", "RESULT", "DETAIL"])]);
}

const ALGORITHMS = { jwt: TokenAlgorithm.JWT, macaroon: TokenAlgorithm.MACAROON };

interface DeriveOptions extends RemoteOptions, CredentialOptions, SecretOptions {
  readonly algorithm: keyof typeof ALGORITHMS;
  readonly ttl?: string;
  readonly scope?: string[];
  /** A value that is JSON, such as 5 or true, is parsed; any other is a string. */
  readonly claim?: Readonly<Record<string, string>>;
  readonly audience?: string[];
}

export async function derive(options: DeriveOptions): Promise<void> {
  const { ttl, scope: scopes = [], claim, audience = [] } = options;
  const algorithm = ALGORITHMS[options.algorithm];
  const claims = claim && Object.entries(claim).map(([name, text]) => [name, parseJson(text) ?? text]);
  const customClaims = claims && Object.fromEntries(claims);
  const { apiKeys } = await openRemote(options);
  const credential = await readCredential(options);
  await outputSecret(options, async () => {
    const answer = await apiKeys.deriveToken({ credential, algorithm, ttl, scopes, customClaims, audience });
    return { secret: answer.token?.token ?? "", answer, record: answer.token ?? answer };
  });
}
