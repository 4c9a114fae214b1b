import { expect, test } from "vitest";
import { type Change, type Observation, type Rotation, unexplained, wronglySigned } from "./checker.ts";
import {
  type Credential,
  created,
  deleted,
  type Effect,
  recordOf,
  revoked,
  rotated,
  updated,
  verdictOn,
} from "./register.ts";

/** Histories by hand: the checker must know the good ones from the bad ones. */

const SECRET: Credential = { type: "secret", text: "", incarnation: 1, secret: 1, scopes: null };
const NEXT_SECRET: Credential = { ...SECRET, secret: 2 };
const RAW: Credential = { ...SECRET, type: "raw" };
const TOKEN: Credential = { ...SECRET, type: "JWT", scopes: ["a", "b"] };

function acknowledged(began: number, ended: number, effect: Effect): Change {
  return { began, acknowledged: ended, effect };
}

function unanswered(began: number, effect: Effect): Change {
  return { began, acknowledged: null, effect };
}

function verdict(began: number, ended: number, said: string, credential = SECRET): Observation {
  return { began, ended, said, expected: (state) => verdictOn(credential, state) };
}

const creation = acknowledged(0, 10, created(1, ["a"]));
const revocation = acknowledged(20, 30, revoked);

const GOOD: readonly (readonly [string, readonly Change[], Observation])[] = [
  ["a key that is not there yet", [creation], verdict(-2, -1, "NOT_FOUND")],
  ["a key that is being made, not yet seen", [creation], verdict(5, 6, "NOT_FOUND")],
  ["a key that is being made, seen already", [creation], verdict(5, 6, "valid a")],
  ["a new key", [creation], verdict(10.1, 11, "valid a")],
  ["the earlier state while the call and the change overlap", [creation, revocation], verdict(29, 40, "valid a")],
  ["the later state while the call and the change overlap", [creation, revocation], verdict(15, 21, "REVOKED")],
  ["a revoked key", [creation, revocation], verdict(31, 32, "REVOKED")],
  ["a revocation without an answer, not seen", [creation, unanswered(20, revoked)], verdict(99, 100, "valid a")],
  ["a revocation without an answer, seen", [creation, unanswered(20, revoked)], verdict(99, 100, "REVOKED")],
  [
    "an update without an answer that is made after a later one",
    [creation, unanswered(20, updated(["b"])), acknowledged(30, 40, updated(["c"]))],
    verdict(50, 51, "valid b"),
  ],
  [
    "of three changes during the call the second",
    [creation, ...["b", "c", "d"].map((scope, n) => acknowledged(20 + n * 10, 25 + n * 10, updated([scope])))],
    verdict(15, 60, "valid c"),
  ],
  ["a secret that was rotated away", [creation, acknowledged(20, 30, rotated(2, false))], verdict(31, 32, "REVOKED")],
  ["a secret in its grace", [creation, acknowledged(20, 30, rotated(2, true))], verdict(31, 32, "valid a")],
  ["the secret after it", [creation, acknowledged(20, 30, rotated(2, false))], verdict(31, 32, "valid a", NEXT_SECRET)],
  ["a token with less than the key has", [creation], verdict(11, 12, "valid a", TOKEN)],
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
];

test.each(GOOD)("explained: %s", (_, changes, observation) => {
  expect(unexplained(changes, [observation])).toEqual([]);
});

const BAD: readonly (readonly [string, readonly Change[], Observation])[] = [
  ["a new key that is not found", [creation], verdict(10.1, 11, "NOT_FOUND")],
  ["a key before anyone made it", [creation], verdict(-2, -1, "valid a")],
  ["a revoked key that is valid", [creation, revocation], verdict(30.1, 31, "valid a")],
  ["a key that is revoked before anyone asked for it", [creation, revocation], verdict(15, 19, "REVOKED")],
  ["scopes that were taken away", [creation, acknowledged(20, 30, updated(["b"]))], verdict(31, 32, "valid a")],
  ["scopes of another key", [creation], verdict(11, 12, "valid z")],
  ["a secret that was rotated away", [creation, acknowledged(20, 30, rotated(2, false))], verdict(31, 32, "valid a")],
  [
    "a secret in its grace that is refused",
    [creation, acknowledged(20, 30, rotated(2, true))],
    verdict(31, 32, "REVOKED"),
  ],
  ["a deleted key", [creation, acknowledged(20, 30, deleted)], verdict(31, 32, "valid a")],
  ["a token of a revoked key", [creation, revocation], verdict(31, 32, "valid a", TOKEN)],
  [
    "a token with scopes that the key lost",
    [creation, acknowledged(20, 30, updated(["b"]))],
    verdict(31, 32, "valid a", TOKEN),
  ],
  ["an error nobody expects", [creation], verdict(11, 12, "SIGNATURE_INVALID")],
  ["an unanswered change before anyone asked for it", [creation, unanswered(20, revoked)], verdict(11, 19, "REVOKED")],
  [
    "an unanswered update that undoes a revocation",
    [creation, unanswered(20, updated(["b"])), acknowledged(30, 40, revoked)],
    verdict(50, 51, "valid b"),
  ],
  [
    "the first of three changes after the second was acknowledged",
    [creation, ...["b", "c", "d"].map((scope, n) => acknowledged(20 + n * 10, 25 + n * 10, updated([scope])))],
    verdict(36, 60, "valid b"),
  ],
];

test.each(BAD)("not explained: %s", (_, changes, observation) => {
  expect(unexplained(changes, [observation])).toEqual([observation]);
});

test("a record that a list shows must be that of the state", () => {
  const shown = (said: string): Observation => ({ began: 31, ended: 32, said, expected: recordOf });
  const [good, bad] = [shown("REVOKED a"), shown("ACTIVE a")];
  expect(unexplained([creation, revocation], [good, bad])).toEqual([bad]);
});

const FIRST: Rotation = { began: 0, acknowledged: 0, kid: "first" };
const SECOND: Rotation = { began: 20, acknowledged: 30, kid: "second" };
const LOST: Rotation = { began: 40, acknowledged: null, kid: null };

test("tokens may be signed with the key that is the active one at some time of the call", () => {
  const signatures = [
    { began: 10, ended: 15, kid: "first" },
    { began: 25, ended: 35, kid: "first" },
    { began: 25, ended: 35, kid: "second" },
    { began: 50, ended: 55, kid: "second" },
    { began: 50, ended: 55, kid: "of a rotation without an answer" },
  ];
  expect(wronglySigned([FIRST, SECOND, LOST], signatures)).toEqual([]);
});

test("tokens must not be signed with a key that was retired, or that nobody had made yet", () => {
  const signatures = [
    { began: 31, ended: 35, kid: "first" },
    { began: 10, ended: 15, kid: "second" },
    { began: 31, ended: 35, kid: "of a rotation without an answer" },
  ];
  expect(wronglySigned([FIRST, SECOND, LOST], signatures)).toEqual(signatures);
});
