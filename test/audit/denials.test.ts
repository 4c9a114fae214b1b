import { expect, test } from "vitest";
import { Denials } from "../../src/audit/denials.ts";
import { localOperator } from "../../src/domain/principal.ts";

const alice = { ...localOperator("alice", "call-1"), rpc: "keyhold.v2alpha1.ApiKeysService/RevokeApiKey" };
const MINUTE = 60_000;

test("the first denied call of a kind is recorded at once, and the others are counted for a minute", () => {
  const denials = new Denials();
  denials.add(alice, "NOT_PERMITTED");
  denials.add(alice, "NOT_PERMITTED");
  denials.add(alice, "REVOKED", "a key");
  const call = expect.objectContaining({ caller: "local:alice", call_id: "call-1", rpc: alice.rpc });
  expect(denials.take(0)).toEqual([
    { call, keyId: null, reason: "NOT_PERMITTED", count: 2 },
    { call, keyId: "a key", reason: "REVOKED", count: 1 },
  ]);
  for (let times = 0; times < 1_000; times++) denials.add(alice, "NOT_PERMITTED");
  expect(denials.take(MINUTE - 1)).toEqual([]);
  expect(denials.take(MINUTE)).toEqual([{ call, keyId: null, reason: "NOT_PERMITTED", count: 1_000 }]);
  expect(denials.take(2 * MINUTE)).toEqual([]);
  denials.add(alice, "REVOKED", "a key");
  expect(denials.take(2 * MINUTE)).toHaveLength(1);
});

test("addresses of one IPv6 network are one kind", () => {
  const denials = new Denials();
  for (const end of ["1", "2"]) denials.add({ ...alice, clientAddress: `2001:db8::${end}` }, "MISSING");
  expect(denials.take(0)).toMatchObject([{ count: 2 }]);
});

test("a flood of kinds is bounded, and what is not recorded is counted", () => {
  const denials = new Denials();
  for (let count = 0; count < 5_000; count++)
    denials.add({ ...alice, clientAddress: `2001:db8:${count.toString(16)}::1` }, "MISSING");
  expect(denials.take(0)).toHaveLength(100);
  expect(denials.dropped).toBe(4_900);
  expect(denials.take(MINUTE)).toEqual([]);
  denials.add(alice, "MISSING");
  expect(denials.take(MINUTE)).toHaveLength(1);
});
