import fc from "fast-check";
import { expect, test } from "vitest";
import {
  MACAROON_MAX_CAVEATS,
  MACAROON_MAX_SIZE,
  type Macaroon,
  MacaroonFormatError,
} from "../../../src/token/macaroon/format.ts";
import { decodeV2, encodeV2 } from "../../../src/token/macaroon/v2.ts";
import samples from "../../vectors/macaroon-v2.json" with { type: "json" };
import { bytes, macaroons } from "./samples.ts";

interface Sample {
  readonly location: string | null;
  readonly identifier: string;
  readonly caveats: readonly { identifier: string; verification_id?: string; location?: string }[];
}

test.each(samples.valid)("reads and writes: $name", ({ hex, macaroon }) => {
  const encoded = fromHex(hex);
  expect(decodeV2(encoded)).toEqual(toMacaroon(macaroon));
  expect(encodeV2(toMacaroon(macaroon))).toEqual(encoded);
});

test.each(samples.invalid)("rejects: $name", ({ hex, error }) => {
  expect(() => decodeV2(fromHex(hex))).toThrow(MacaroonFormatError);
  expect(() => decodeV2(fromHex(hex))).toThrow(error);
});

test("errors contain nothing of the content", () => {
  const encoded = Buffer.concat([encodeV2(padded(10)), bytes("secret")]);
  expect(() => decodeV2(encoded)).toThrow(/^unexpected bytes after the signature$/);
});

test("enforces the limits of caveats and bytes", () => {
  const caveat = { identifier: bytes("c"), thirdParty: undefined };
  const many = (count: number) => encodeV2({ ...padded(1), caveats: Array(count).fill(caveat) });
  expect(decodeV2(many(MACAROON_MAX_CAVEATS)).caveats).toHaveLength(MACAROON_MAX_CAVEATS);
  expect(() => decodeV2(many(MACAROON_MAX_CAVEATS + 1))).toThrow(/^over 100 caveats$/);

  const overhead = encodeV2(padded(1000)).length - 1000;
  const large = (size: number) => encodeV2(padded(size - overhead));
  expect(encodeV2(decodeV2(large(MACAROON_MAX_SIZE)))).toHaveLength(MACAROON_MAX_SIZE);
  expect(() => decodeV2(large(MACAROON_MAX_SIZE + 1))).toThrow(/^over 6144 bytes$/);
});

test("decode inverts encode", () => {
  fc.assert(
    fc.property(macaroons, (macaroon) => {
      expect(decodeV2(encodeV2(macaroon))).toEqual(macaroon);
    }),
  );
});

test("any bytes re-encode exactly or are a format error", () => {
  const counts = { read: 0, refused: 0 };
  fc.assert(
    fc.property(nearMacaroons, (encoded) => {
      const macaroon = tryDecode(encoded);
      counts[macaroon === undefined ? "refused" : "read"] += 1;
      if (macaroon !== undefined) expect(Buffer.from(encodeV2(macaroon)).equals(encoded)).toBe(true);
    }),
    { numRuns: 2000 },
  );
  expect(counts.read).toBeGreaterThan(100);
  expect(counts.refused).toBeGreaterThan(100);
});

/** Any bytes, and macaroons with a range of their bytes replaced. */
const nearMacaroons = fc.oneof(
  fc.uint8Array({ maxLength: 100 }),
  fc.uint8Array({ maxLength: 100 }).map((rest) => Uint8Array.of(2, ...rest)),
  fc
    .tuple(macaroons.map(encodeV2), fc.nat(), fc.uint8Array({ maxLength: 3 }), fc.constantFrom(0, 0, 0, 1, -1))
    .map(([encoded, at, put, more]) => splice(encoded, at % encoded.length, Math.max(put.length + more, 0), put)),
);

function splice(encoded: Uint8Array, at: number, cut: number, put: Uint8Array): Uint8Array {
  return Buffer.concat([encoded.subarray(0, at), put, encoded.subarray(at + cut)]);
}

function tryDecode(encoded: Uint8Array): Macaroon | undefined {
  try {
    return decodeV2(encoded);
  } catch (error) {
    expect(error).toBeInstanceOf(MacaroonFormatError);
    return undefined;
  }
}

function padded(size: number): Macaroon {
  return { location: undefined, identifier: new Uint8Array(size), caveats: [], signature: new Uint8Array(32) };
}

function fromHex(hex: string): Uint8Array {
  return Buffer.from(hex.replaceAll(" ", "").replaceAll("SIGNATURE", `0620${"aa".repeat(32)}`), "hex");
}

function toMacaroon({ location, identifier, caveats }: Sample): Macaroon {
  return {
    location: location ?? undefined,
    identifier: fromHex(identifier),
    caveats: caveats.map((caveat) => ({
      identifier: fromHex(caveat.identifier),
      thirdParty:
        caveat.verification_id === undefined
          ? undefined
          : { location: caveat.location, verificationId: fromHex(caveat.verification_id) },
    })),
    signature: Buffer.alloc(32, 0xaa),
  };
}
