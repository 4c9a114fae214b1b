import { writeObject } from "../record.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";

export async function deleteKey(keyId: string, options: RemoteOptions): Promise<void> {
  const { imported } = await openRemote(options);
  await imported.deleteImportedApiKey({ keyId });
  await writeObject(options.json === true ? {} : { key_id: keyId, status: "deleted" }, options);
}
