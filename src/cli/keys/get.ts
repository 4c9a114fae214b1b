import { ImportedApiKeySchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeySchema } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { restJson, writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { ofEitherKind } from "./either-kind.ts";

export async function get(keyId: string, options: RemoteOptions): Promise<void> {
  const { issuedApiKeys, importedApiKeys } = await openRemote(options);
  const key = await ofEitherKind(
    keyId,
    async () => restJson(IssuedApiKeySchema, await issuedApiKeys.getIssuedApiKey({ keyId })),
    async () => restJson(ImportedApiKeySchema, await importedApiKeys.getImportedApiKey({ keyId })),
  );
  await writeObject(key, options);
}
