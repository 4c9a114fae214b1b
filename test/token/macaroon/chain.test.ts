import fc from "fast-check";
import macaroon from "macaroon";
import { expect, test } from "vitest";
import { chainSignature } from "../../../src/token/macaroon/chain.ts";

const data = fc.uint8Array({ maxLength: 150 });

test("the chain equals that of another library", () => {
  fc.assert(
    fc.property(data, data, fc.array(data, { maxLength: 5 }), (rootKey, identifier, conditions) => {
      const chain = macaroon.newMacaroon({ rootKey, identifier });
      for (const condition of conditions) chain.addFirstPartyCaveat(condition);
      const signature = chainSignature(rootKey, identifier, conditions);
      expect(Buffer.from(signature).toString("hex")).toBe(Buffer.from(chain.signature).toString("hex"));
    }),
  );
});
