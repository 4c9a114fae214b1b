import { Buffer } from "node:buffer";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HEAD_BYTES, unframe } from "../../../src/transport/wire/grpc.ts";

const LIMIT = 70_000;

/** A frame header with this length, and that many bytes after it. */
function headed(length: number, following: number): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES + following);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

describe("a frame", () => {
  test("decodes to its message at any offset in memory", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: LIMIT }), fc.nat({ max: 9 }), (message, offset) => {
        const moved = Buffer.concat([Buffer.alloc(offset), encodeEnvelope(0, message)]).subarray(offset);
        expect(Buffer.from(unframe(moved, LIMIT)).equals(message)).toBe(true);
      }),
    );
  });

  test("has an unsigned big-endian length of four bytes", () => {
    const lengths = [0, 1, 0xff, 0x100, 0xffff, 0x1_0000];
    expect(lengths.map((length) => unframe(headed(length, length), LIMIT).length)).toEqual(lengths);
    for (const length of [LIMIT + 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]) {
      expect(() => unframe(headed(length, 3), LIMIT)).toThrow(expect.objectContaining({ code: 8 }));
    }
  });
});
