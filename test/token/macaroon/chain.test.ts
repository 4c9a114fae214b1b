import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { chainSignature } from "../../../src/token/macaroon/chain.ts";

const data = fc.uint8Array({ maxLength: 150 });

test("the chain of the package is that of libmacaroons, written down anew", () => {
  fc.assert(
    fc.property(data, data, fc.array(data, { maxLength: 5 }), (rootKey, identifier, conditions) => {
      const signature = [identifier, ...conditions].reduce(hmac, hmac(Buffer.from("macaroons-key-generator"), rootKey));
      expect(Buffer.from(chainSignature(rootKey, identifier, conditions))).toEqual(signature);
    }),
  );
});

function hmac(key: Uint8Array, message: Uint8Array): Buffer {
  return createHmac("sha256", key).update(message).digest();
}
