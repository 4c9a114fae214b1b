import type { HmacKeysService } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { createHmacKey, deleteHmacKey, listHmacKeys } from "../../hashing/hmac-keys.ts";
import { parseHmacKey } from "../../hashing/input/hmac-key.ts";
import type { ListedHmacKey } from "../../hashing/store.ts";
import type { ServiceRows } from "../row.ts";
import { textEncoding } from "./enums.ts";
import { timestamp } from "./key-resources.ts";

/** HMAC keys belong to no actor: a caller that may manage the keys of some actors only must not see or use up those of all. */
const unrestricted = "manage HMAC keys";

export const hmacKeys: ServiceRows<typeof HmacKeysService> = {
  createHmacKey: {
    implement:
      ({ hmacKeys }) =>
      ({ hmacKeyId, key, encoding }) => {
        const secret = parseHmacKey(key, textEncoding(encoding, "encoding"));
        return async (principal) => hmacKey(await createHmacKey(hmacKeys, principal, hmacKeyId, secret));
      },
    policy: "keyhold:keys.import",
    unrestricted,
    idempotency: "idempotent",
  },
  listHmacKeys: {
    implement:
      ({ hmacKeys }) =>
      () =>
      async () => ({ hmacKeys: (await listHmacKeys(hmacKeys)).map(hmacKey) }),
    policy: "keyhold:keys.read",
    unrestricted,
    idempotency: "no side effects",
  },
  deleteHmacKey: {
    implement:
      ({ hmacKeys }) =>
      ({ hmacKeyId }) =>
      async (principal) => {
        await deleteHmacKey(hmacKeys, principal, hmacKeyId);
        return {};
      },
    policy: "keyhold:keys.import",
    unrestricted,
    idempotency: "idempotent",
  },
};

function hmacKey({ createTime, ...key }: ListedHmacKey) {
  return { ...key, createTime: timestamp(createTime) };
}
