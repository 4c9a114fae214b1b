import { writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";

export async function deleteKey(keyId: string, options: RemoteOptions): Promise<void> {
  const { importedApiKeys } = await openRemote(options);
  await importedApiKeys.deleteImportedApiKey({ keyId });
  await writeObject(options.json === true ? {} : { key_id: keyId, status: "deleted" }, options);
}
