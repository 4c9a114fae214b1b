import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { identify, type NewKeyInput, NO_SOURCE, requireRepeat } from "../../src/keys/new-key.ts";

const RING = deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "request-fingerprint");

const INPUT: NewKeyInput = {
  ...{ name: "n", actorId: "a", scopes: ["s"], metadata: { z: "1", b: "2" }, ttl: "1h", requestId: "r" },
};

/** As release 0.2 computes it. */
function fingerprintOf02(rawKey: string | null): Buffer {
  const text = JSON.stringify(["n", "a", ["s"], "1h", Object.entries({ b: "2", z: "1" }), rawKey]);
  return createHmac("sha256", RING.current.secret).update(text).digest();
}

test.each([null, "raw-key"])("a request that release 0.2 has served is a repeat (raw key: %s)", (rawKey) => {
  expect(Buffer.from(identify(INPUT, { rawKey }, RING)?.fingerprint ?? [])).toEqual(fingerprintOf02(rawKey));
  expect(() => requireRepeat(INPUT, { rawKey }, fingerprintOf02(rawKey), RING)).not.toThrow();
});

test("the same request with a restriction is another one, and so is one with another restriction", () => {
  const restricted = (...allowedCidrs: string[]) => ({ ...INPUT, ipRestriction: { allowedCidrs } });
  const stored = identify(restricted("10.0.0.0/8"), NO_SOURCE, RING)?.fingerprint ?? new Uint8Array();
  expect(() => requireRepeat(restricted("10.0.0.0/8"), NO_SOURCE, stored, RING)).not.toThrow();
  for (const other of [INPUT, restricted(), restricted("10.0.0.0/9"), restricted("10.0.0.0/8", "::1")]) {
    expect(() => requireRepeat(other, NO_SOURCE, stored, RING)).toThrow(/was already used for a request/);
  }
});
