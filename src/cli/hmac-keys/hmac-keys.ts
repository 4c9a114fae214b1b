import { TextEncoding } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { writeList, writeMessage } from "../rest-json.ts";

const ENCODINGS = {
  hex: TextEncoding.HEX,
  base64: TextEncoding.BASE64,
  base64url: TextEncoding.BASE64URL,
  utf8: TextEncoding.UTF8,
};

type CreateOptions = RemoteOptions & CredentialOptions & { readonly encoding: keyof typeof ENCODINGS };

export async function createHmacKey(hmacKeyId: string, options: CreateOptions): Promise<void> {
  const { hmacKeys } = await openRemote(options);
  const key = await readCredential(options, "HMAC key");
  await writeMessage(await hmacKeys.createHmacKey({ hmacKeyId, key, encoding: ENCODINGS[options.encoding] }), options);
}

const COLUMNS = {
  hmac_key_id: "HMAC KEY ID",
  create_time: "CREATED",
  created_by: "CREATED BY",
  not_adopted_count: "NOT ADOPTED",
};

export async function listHmacKeys(options: RemoteOptions): Promise<void> {
  const { hmacKeys } = await openRemote(options);
  const { hmacKeys: keys } = await hmacKeys.listHmacKeys({});
  await writeList([keys], COLUMNS, "no HMAC keys", options);
}

export async function deleteHmacKey(hmacKeyId: string, options: RemoteOptions): Promise<void> {
  const { hmacKeys } = await openRemote(options);
  await hmacKeys.deleteHmacKey({ hmacKeyId });
  await writeObject(options.json === true ? {} : { hmac_key_id: hmacKeyId, status: "deleted" }, options);
}
