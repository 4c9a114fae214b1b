import { expect, test } from "vitest";
import { History } from "./history.ts";
import { type Credential, created } from "./register.ts";
import { findViolations } from "./violations.ts";

const header = Buffer.from(JSON.stringify({ alg: "EdDSA", kid: "first" })).toString("base64url");
const TOKEN: Credential = { type: "JWT", text: `${header}.e30.c2ln`, generation: 1, secret: 1, scopes: ["a"] };
const SECRET: Credential = { ...TOKEN, type: "secret", text: "secret", scopes: null };

/** Verdicts on an active key; its token is signed with a key whose revocation began at 10 and, if it was acknowledged, ended at 20. */
function violationsOf(
  observed: string,
  [began, ended]: readonly [number, number],
  acknowledged: number | null,
  one = TOKEN,
) {
  const history = new History();
  history.revocations.push({ kid: "other", began: 0, acknowledged: 1 }, { kid: "first", began: 10, acknowledged });
  const register = history.register("issued");
  register.mutations.push({
    kind: "issue",
    node: "node 1",
    callId: "",
    began: 0,
    acknowledged: 1,
    effect: created(1, ["a"]),
  });
  history.verdict(register, one, { node: "node 1", by: "gRPC single", began, ended, observed });
  return findViolations(history).length;
}

test.each([
  ["accepted before", "valid a", [5, 9], 20],
  ["accepted during the revocation", "valid a", [15, 25], 20],
  ["rejected during the revocation", "SIGNATURE_INVALID", [5, 11], 20],
  ["rejected after it", "SIGNATURE_INVALID", [21, 22], 20],
  ["accepted after a revocation without a response", "valid a", [100, 101], null],
  ["rejected after a revocation without a response", "SIGNATURE_INVALID", [100, 101], null],
] as const)("a token may be %s", (_, observed, time, acknowledged) => {
  expect(violationsOf(observed, time, acknowledged)).toBe(0);
});

test.each([
  ["a token accepted after the revocation", "valid a", [21, 22], TOKEN],
  ["a token judged by its key after the revocation", "REVOKED", [21, 22], TOKEN],
  ["a token rejected before the revocation", "SIGNATURE_INVALID", [5, 9], TOKEN],
  ["a secret rejected by its signature", "SIGNATURE_INVALID", [21, 22], SECRET],
] as const)("%s is a violation", (_, observed, time, credential) => {
  expect(violationsOf(observed, time, 20, credential)).toBeGreaterThan(0);
});
