import fc from "fast-check";
import { expect, test } from "vitest";
import { formatIdentifier, parseIdentifier } from "../../../src/token/macaroon/identifier.ts";
import samples from "../../vectors/macaroon-identifier.json" with { type: "json" };
import { bytes, inputs } from "./samples.ts";

test.each(samples.valid)("reads and prints back %s", (text) => {
  const identifier = parseIdentifier(bytes(text));
  if (identifier === undefined) throw new Error("refused");
  expect(Buffer.from(formatIdentifier(identifier)).toString()).toBe(text);
});

test.each(Object.entries(samples.invalid))("rejects: %s", (_, text) => {
  expect(parseIdentifier(bytes(text))).toBeUndefined();
});

test("rejects bytes that are not UTF-8", () => {
  const [first = ""] = samples.valid;
  expect(parseIdentifier(Buffer.concat([bytes(first), Uint8Array.of(0xff)]))).toBeUndefined();
});

test("parse inverts format", () => {
  fc.assert(
    fc.property(inputs, fc.nat(), (input, mintedCaveats) => {
      const { tokenId, keyId, secretVersion, issueTime, parentId } = input;
      const identifier = {
        rootKeyId: input.rootKey.id,
        tokenId,
        keyId,
        secretVersion,
        issueTime,
        parentId,
        mintedCaveats,
      };
      expect(parseIdentifier(formatIdentifier(identifier))).toEqual(identifier);
    }),
  );
});
