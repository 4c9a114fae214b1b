import { ImportedApiKeySchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeySchema } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { restJson, writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { ofEitherKind } from "./either-kind.ts";
import { pairs } from "./option-values.ts";

export interface UpdateOptions extends RemoteOptions {
  readonly name?: string;
  readonly scope?: string[];
  readonly clearScopes?: boolean;
  readonly metadata?: readonly string[];
  readonly clearMetadata?: boolean;
}

/** Updates the given fields. Scopes and metadata are replaced entirely. */
export async function update(keyId: string, options: UpdateOptions): Promise<void> {
  const { name, scope: scopes = [] } = options;
  const paths = pathsOf(options);
  if (paths.length === 0)
    throw invalidArgument("options", "nothing to update: give --name, --scope, --metadata, or one of --clear-…");
  const key = { keyId, name: name ?? "", scopes, metadata: pairs("--metadata", options.metadata) };
  const { issuedApiKeys, importedApiKeys } = await openRemote(options);
  const updated = await ofEitherKind(
    keyId,
    async () => {
      const request = { issuedApiKey: key, updateMask: { paths } };
      return restJson(IssuedApiKeySchema, await issuedApiKeys.updateIssuedApiKey(request));
    },
    async () => {
      const request = { importedApiKey: key, updateMask: { paths } };
      return restJson(ImportedApiKeySchema, await importedApiKeys.updateImportedApiKey(request));
    },
  );
  await writeObject(updated, options);
}

function pathsOf({ name, scope, clearScopes, metadata, clearMetadata }: UpdateOptions): string[] {
  const changes = { name: name !== undefined, scopes: scope ?? clearScopes, metadata: metadata ?? clearMetadata };
  return Object.entries(changes).flatMap(([path, isChanged]) => (isChanged ? path : []));
}
