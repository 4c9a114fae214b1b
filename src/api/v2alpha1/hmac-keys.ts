import type { CreateHmacKeyRequest, HmacKeysService } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { createHmacKey, deleteHmacKey, listHmacKeys } from "../../hashing/hmac-keys.ts";
import { parseHmacKey } from "../../hashing/input/hmac-key.ts";
import type { ListedHmacKey } from "../../hashing/store.ts";
import type { ServiceRows } from "../row.ts";
import { textEncoding } from "./enums.ts";
import { timestamp } from "./key-resources.ts";

export const hmacKeys: ServiceRows<typeof HmacKeysService> = {
  createHmacKey: {
    implement:
      ({ hmacKeys }) =>
      async (request, principal) =>
        hmacKey(await createHmacKey(hmacKeys, principal, readKey(request))),
    check: (request) => {
      const { key, encoding } = readKey(request);
      return parseHmacKey(key, encoding);
    },
    policy: "keyhold:keys.import",
    idempotency: "idempotent",
  },
  listHmacKeys: {
    implement:
      ({ hmacKeys }) =>
      async (_, principal) => ({ hmacKeys: (await listHmacKeys(hmacKeys, principal)).map(hmacKey) }),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
  },
  deleteHmacKey: {
    implement:
      ({ hmacKeys }) =>
      async ({ hmacKeyId }, principal) => {
        await deleteHmacKey(hmacKeys, principal, hmacKeyId);
        return {};
      },
    policy: "keyhold:keys.import",
    idempotency: "idempotent",
  },
};

function readKey({ hmacKeyId, key, encoding }: CreateHmacKeyRequest) {
  return { hmacKeyId, key, encoding: textEncoding(encoding, "encoding") };
}

function hmacKey({ createTime, ...key }: ListedHmacKey) {
  return { ...key, createTime: timestamp(createTime) };
}
