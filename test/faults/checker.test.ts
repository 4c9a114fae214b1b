import { expect, test } from "vitest";
import { type Change, invalidSignatures, type Observation, type Rotation, unexplained } from "./checker.ts";
import {
  type Credential,
  created,
  deleted,
  disabled,
  type Effect,
  enabled,
  recordOf,
  revoked,
  rotated,
  updated,
  verdictOn,
} from "./register.ts";

/** Hand-written histories: the checker must accept the valid ones and reject the others. */

const SECRET: Credential = { type: "secret", text: "", generation: 1, secret: 1, scopes: null };
const NEXT_SECRET: Credential = { ...SECRET, secret: 2 };
const RAW: Credential = { ...SECRET, type: "raw" };
const TOKEN: Credential = { ...SECRET, type: "JWT", scopes: ["a", "b"] };

function acknowledged(began: number, ended: number, effect: Effect): Change {
  return { began, acknowledged: ended, effect };
}

function unanswered(began: number, effect: Effect): Change {
  return { began, acknowledged: null, effect };
}

function verdict(began: number, ended: number, observed: string, credential = SECRET): Observation {
  return { began, ended, observed, expected: (state) => verdictOn(credential, state) };
}

const creation = acknowledged(0, 10, created(1, ["a"]));
const revocation = acknowledged(20, 30, revoked);

const disabling = acknowledged(20, 30, disabled);
const enabling = acknowledged(40, 50, enabled);

const GOOD: readonly (readonly [string, readonly Change[], Observation])[] = [
  ["a key that does not exist yet", [creation], verdict(-2, -1, "NOT_FOUND")],
  ["a key whose creation is in flight, not found", [creation], verdict(5, 6, "NOT_FOUND")],
  ["a key whose creation is in flight, valid", [creation], verdict(5, 6, "valid a")],
  ["a new key", [creation], verdict(10.1, 11, "valid a")],
  ["the earlier state while the call and the change overlap", [creation, revocation], verdict(29, 40, "valid a")],
  ["the later state while the call and the change overlap", [creation, revocation], verdict(15, 21, "REVOKED")],
  ["a revoked key", [creation, revocation], verdict(31, 32, "REVOKED")],
  ["a revocation without a response, not effective", [creation, unanswered(20, revoked)], verdict(99, 100, "valid a")],
  ["a revocation without a response, effective", [creation, unanswered(20, revoked)], verdict(99, 100, "REVOKED")],
  [
    "an update without a response that takes effect after a later one",
    [creation, unanswered(20, updated(["b"])), acknowledged(30, 40, updated(["c"]))],
    verdict(50, 51, "valid b"),
  ],
  [
    "the second of three changes during the call",
    [creation, ...["b", "c", "d"].map((scope, n) => acknowledged(20 + n * 10, 25 + n * 10, updated([scope])))],
    verdict(15, 60, "valid c"),
  ],
  ["the old secret after a rotation", [creation, acknowledged(20, 30, rotated(2, false))], verdict(31, 32, "REVOKED")],
  ["a secret in its grace period", [creation, acknowledged(20, 30, rotated(2, true))], verdict(31, 32, "valid a")],
  [
    "the new secret after a rotation",
    [creation, acknowledged(20, 30, rotated(2, false))],
    verdict(31, 32, "valid a", NEXT_SECRET),
  ],
  ["a token with fewer scopes than its key", [creation], verdict(11, 12, "valid a", TOKEN)],
  [
    "a raw key that was imported again",
    [creation, acknowledged(20, 30, deleted), acknowledged(40, 50, created(2, ["b"]))],
    verdict(51, 52, "valid b", RAW),
  ],
  [
    "a token of a key that was deleted and imported again",
    [creation, acknowledged(20, 30, deleted), acknowledged(40, 50, created(2, ["b"]))],
    verdict(51, 52, "NOT_FOUND", TOKEN),
  ],
  ["a disabled key", [creation, disabling], verdict(31, 32, "DISABLED")],
  ["a key that is being disabled, valid", [creation, disabling], verdict(29, 40, "valid a")],
  ["a token of a disabled key", [creation, disabling], verdict(31, 32, "DISABLED", TOKEN)],
  ["an enabled key", [creation, disabling, enabling], verdict(51, 52, "valid a")],
  ["a key that is being enabled, disabled", [creation, disabling, enabling], verdict(49, 60, "DISABLED")],
  [
    "an unanswered disabling that takes effect last",
    [creation, unanswered(20, disabled), enabling],
    verdict(51, 52, "DISABLED"),
  ],
  [
    "a disabled key after its revocation",
    [creation, disabling, acknowledged(40, 50, revoked)],
    verdict(51, 52, "REVOKED"),
  ],
  [
    "the new secret of a disabled key",
    [creation, disabling, acknowledged(40, 50, rotated(2, false))],
    verdict(51, 52, "DISABLED", NEXT_SECRET),
  ],
  [
    "a disabled raw key that was imported again",
    [creation, disabling, acknowledged(40, 50, deleted), acknowledged(60, 70, created(2, ["b"]))],
    verdict(71, 72, "valid b", RAW),
  ],
];

test.each(GOOD)("explained: %s", (_, changes, observation) => {
  expect(unexplained(changes, [observation])).toEqual([]);
});

const BAD: readonly (readonly [string, readonly Change[], Observation])[] = [
  ["a new key that is not found", [creation], verdict(10.1, 11, "NOT_FOUND")],
  ["a valid key before its creation", [creation], verdict(-2, -1, "valid a")],
  ["a revoked key that is valid", [creation, revocation], verdict(30.1, 31, "valid a")],
  ["a revoked key before its revocation", [creation, revocation], verdict(15, 19, "REVOKED")],
  ["scopes that were removed", [creation, acknowledged(20, 30, updated(["b"]))], verdict(31, 32, "valid a")],
  ["scopes of another key", [creation], verdict(11, 12, "valid z")],
  ["the old secret after a rotation", [creation, acknowledged(20, 30, rotated(2, false))], verdict(31, 32, "valid a")],
  [
    "a rejected secret in its grace period",
    [creation, acknowledged(20, 30, rotated(2, true))],
    verdict(31, 32, "REVOKED"),
  ],
  ["a deleted key", [creation, acknowledged(20, 30, deleted)], verdict(31, 32, "valid a")],
  ["a token of a revoked key", [creation, revocation], verdict(31, 32, "valid a", TOKEN)],
  [
    "a token with scopes that its key no longer has",
    [creation, acknowledged(20, 30, updated(["b"]))],
    verdict(31, 32, "valid a", TOKEN),
  ],
  ["an unexpected error", [creation], verdict(11, 12, "SIGNATURE_INVALID")],
  ["the effect of a change before it was sent", [creation, unanswered(20, revoked)], verdict(11, 19, "REVOKED")],
  [
    "an update without a response that reverts a revocation",
    [creation, unanswered(20, updated(["b"])), acknowledged(30, 40, revoked)],
    verdict(50, 51, "valid b"),
  ],
  [
    "the first of three changes after the second was acknowledged",
    [creation, ...["b", "c", "d"].map((scope, n) => acknowledged(20 + n * 10, 25 + n * 10, updated([scope])))],
    verdict(36, 60, "valid b"),
  ],
  ["a disabled key that is accepted", [creation, disabling], verdict(30.1, 31, "valid a")],
  ["a token of a disabled key that is accepted", [creation, disabling], verdict(31, 32, "valid a", TOKEN)],
  ["an enabled key that is rejected", [creation, disabling, enabling], verdict(50.1, 51, "DISABLED")],
  ["a token of an enabled key that is rejected", [creation, disabling, enabling], verdict(51, 52, "DISABLED", TOKEN)],
  ["a disabled key before it was disabled", [creation, disabling], verdict(15, 19, "DISABLED")],
  [
    "a key that was disabled again and is accepted",
    [creation, disabling, enabling, acknowledged(60, 70, disabled)],
    verdict(71, 72, "valid a"),
  ],
  [
    "a disabled key that is accepted after a repeated call",
    [creation, unanswered(20, disabled), acknowledged(40, 50, disabled)],
    verdict(51, 52, "valid a"),
  ],
];

test.each(BAD)("not explained: %s", (_, changes, observation) => {
  expect(unexplained(changes, [observation])).toEqual([observation]);
});

test("a listed record must match the state", () => {
  const shown = (observed: string): Observation => ({ began: 31, ended: 32, observed, expected: recordOf });
  const [good, bad] = [shown("REVOKED a"), shown("ACTIVE a")];
  expect(unexplained([creation, revocation], [good, bad])).toEqual([bad]);
  const flipped = ["DISABLED a", "ACTIVE a"].map(shown);
  expect(unexplained([creation, disabling], flipped)).toEqual([flipped[1]]);
});

const FIRST: Rotation = { began: 0, acknowledged: 0, kid: "first" };
const SECOND: Rotation = { began: 20, acknowledged: 30, kid: "second" };
const LOST: Rotation = { began: 40, acknowledged: null, kid: null };

test("tokens may be signed with a key that is active at some time during the call", () => {
  const signatures = [
    { began: 10, ended: 15, kid: "first" },
    { began: 25, ended: 35, kid: "first" },
    { began: 25, ended: 35, kid: "second" },
    { began: 50, ended: 55, kid: "second" },
    { began: 50, ended: 55, kid: "of a rotation without a response" },
  ];
  expect(invalidSignatures([FIRST, SECOND, LOST], signatures)).toEqual([]);
});

test("tokens must not be signed with a retired key, or with one that does not exist yet", () => {
  const signatures = [
    { began: 31, ended: 35, kid: "first" },
    { began: 10, ended: 15, kid: "second" },
    { began: 31, ended: 35, kid: "of a rotation without a response" },
  ];
  expect(invalidSignatures([FIRST, SECOND, LOST], signatures)).toEqual(signatures);
});
