import { ImportedApiKeySchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { restJson, writeObject } from "../output.ts";
import { openRemote } from "../remote.ts";
import type { IssueOptions } from "./issue.ts";
import { pairs } from "./option-values.ts";

export type ImportOneOptions = Omit<IssueOptions, "out"> & CredentialOptions;

/** Imports one key. The raw key is a secret, so it is read from stdin or a file. */
export async function importOne(options: ImportOneOptions): Promise<void> {
  const { name, actor: actorId, scope: scopes = [], ttl, requestId } = options;
  const metadata = pairs("--metadata", options.metadata);
  const { importedApiKeys } = await openRemote(options);
  const rawKey = await readCredential(options, "Raw key");
  const key = await importedApiKeys.createImportedApiKey({ name, actorId, scopes, ttl, requestId, metadata, rawKey });
  await writeObject(restJson(ImportedApiKeySchema, key), options);
}
