import { expect, test } from "vitest";
import { deriveKeyRing, type ServerKeyLabel } from "../../src/domain/server-keys.ts";
import { unwrapSecret, type WrapPurpose, wrapSecret } from "../../src/domain/wrapped-secret.ts";
import { affixesOf, hmacKeyOf } from "../../src/hashing/schemes.ts";

/** Stored by release 0.3, whose signing keys and HMAC keys had an implementation each. The root secret is 32 bytes of 7. */
const STORED: readonly (readonly [WrapPurpose, ServerKeyLabel, secret: string, wrapped: string])[] = [
  [
    hmacKeyOf({ hmacKeyId: "billing" }),
    "hash-scheme-wrap",
    Buffer.from("the key of an HMAC").toString("hex"),
    "010b30557a9fc4e90e33587da2765923803ee90586b5f5cb6a8a493ddfb4104eb3fbf869b9ad3096aba468e6a5fcf4",
  ],
  [
    affixesOf("SHA256", 1),
    "hash-scheme-wrap",
    Buffer.from('["salt:",""]').toString("hex"),
    "01c7ec11365b80a5caef14395e2a86e98f273b70874f2946daa68c5e169761ea18bffa1f4dde198972",
  ],
  [
    { purpose: "signing key", name: "_OyX3-dOYfsERIZHg3Ercv2J4NKQrx8TDQ0BzxzNHWI", version: 1, size: 32 },
    "signing-key-wrap",
    "83a8cdf2173c6186abd0f51a3f6489aed3f81d42678cb1d6fb20456a8fb4d9fe",
    "0123486d92b7dc01264b7095ba473e370402e0b8155b454d11f201669fd3d73904b81d44c31d713b5e8275b409ee7a9c67941a6d0a1cef2eadba74d14b",
  ],
  [
    { purpose: "signing key", name: "wJaK4DVSnbfiBbkCtVK2yugnVo2QnLHoS77EImyXFsw", version: 2, size: 32 },
    "signing-key-wrap",
    "df04294e7398bde2072c51769bc0e50a2f54799ec3e80d32577ca1c6eb10355a",
    "027fa4c9ee13385d82a7ccf11637e29221a52f83ffac89a15cbf1d1760c80d589b7253f4f54807b59fa2f317093146a914c99c46e5cf6c52219351db93",
  ],
];

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

test.each(STORED)("$purpose $name has the stored form of earlier releases", (purpose, label, secret, stored) => {
  const ring = deriveKeyRing({ current: Buffer.alloc(32, 7), retired: [] }, label);
  const wrapped = { wrapped: Buffer.from(stored, "hex"), wrapKeyId: ring.current.id };
  const nonce = wrapped.wrapped.subarray(1, 13);
  expect(hex(unwrapSecret(wrapped, purpose, ring))).toBe(secret);
  const again = wrapSecret(Buffer.from(secret, "hex"), purpose, ring.current, { bytes: () => nonce });
  expect([hex(again.wrapped), again.wrapKeyId]).toEqual([stored, ring.current.id]);
});

test.each(STORED)(
  "$purpose $name unwraps under no other purpose, name, version or size",
  (purpose, label, _, stored) => {
    const ring = deriveKeyRing({ current: Buffer.alloc(32, 7), retired: [] }, label);
    const wrapped = { wrapped: Buffer.from(stored, "hex"), wrapKeyId: ring.current.id };
    const other = purpose.purpose === "hmac key" ? "hash affixes" : "hmac key";
    for (const change of [{ purpose: other }, { name: "other" }, { version: 3 }, { size: 1 }] as const)
      expect(() => unwrapSecret(wrapped, { ...purpose, ...change }, ring)).toThrow(/cannot be unwrapped/);
  },
);
