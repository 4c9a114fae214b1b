import { expect, test } from "vitest";
import type { StoredEvent } from "../support/audit-replay.ts";
import { table } from "../support/conformance.ts";
import { compareEvents, compareSigningKeyEvents } from "./audit-log.ts";
import { History } from "./history.ts";
import { deleted } from "./register.ts";

const SERVICE = "keyhold.v2alpha1.Service";
const RPCS = {
  import: "CreateImportedApiKey",
  disable: "DisableApiKey",
  enable: "EnableApiKey",
  delete: "DeleteImportedApiKey",
  revoke: "RevokeApiKey",
};
const ACTIONS = {
  import: "key.imported",
  disable: "key.disabled",
  enable: "key.enabled",
  delete: "key.deleted",
  revoke: "key.revoked",
};

type Kind = keyof typeof RPCS;

/** A change of this kind; `?`: without a response. */
type Change = Kind | `${Kind}?`;

/** Returns a history with these changes of one key. */
function historyOf(kinds: readonly Change[]): History {
  const history = new History();
  const { mutations } = history.register("imported");
  for (const [place, text] of kinds.entries()) {
    const [kind, began] = [text.replace("?", ""), place * 10];
    const acknowledged = text.endsWith("?") ? null : began + 5;
    mutations.push({ kind, node: "node 1", callId: `call ${place}`, began, acknowledged, effect: deleted });
  }
  return history;
}

function event(kind: Kind, place: number): StoredEvent {
  const call = { caller: "none:anonymous", method: "none", subject: "anonymous", call_id: `call ${place}` } as const;
  const after = kind === "import" ? { name: "key 1" } : {};
  const rest = { keyId: "id", resourceId: null, before: null, after };
  return { seq: place, action: ACTIONS[kind], call: { ...call, rpc: `${SERVICE}/${RPCS[kind]}` }, ...rest };
}

/** Returns the places of the lost changes. */
function lostOf(kinds: readonly Change[], logged: readonly number[]): number[] {
  const history = historyOf(kinds);
  const events = logged.map((place) => event(kinds[place]?.replace("?", "") as Kind, place));
  const { lost, violations } = compareEvents(history, events);
  expect(violations).toEqual([]);
  return lost.map(({ began }) => began / 10);
}

const LOGS = table<readonly [name: string, kinds: readonly Change[], logged: number[], lost: number[]]>([
  ["each change has an event", ["import", "disable", "enable", "disable"], [0, 1, 2, 3], []],
  ["an acknowledged change needs one", ["import", "disable", "enable", "disable"], [0, 1, 2], [3]],
  ["a change without a response may have one", ["import", "disable?"], [0, 1], []],
  ["or none", ["import", "disable?"], [0], []],
  ["a repetition needs none", ["import", "disable", "disable", "enable", "enable"], [0, 1, 3], []],
  ["a repetition is lost with the change before it", ["import", "disable", "disable"], [0], [1, 2]],
  ["it may repeat one without a response", ["import", "disable?", "disable"], [0, 1], []],
  ["but not the one before that", ["import", "disable", "enable", "disable"], [0, 1, 2], [3]],
  ["a key imported again is not disabled", ["import", "disable", "delete", "import", "disable"], [0, 1, 2, 3], [4]],
  ["a revocation may repeat an attempt", ["import", "revoke?", "revoke"], [0, 1], []],
  ["which must have an event", ["import", "revoke?", "revoke"], [0], [2]],
  ["a deletion does not repeat one that was acknowledged", ["import", "delete", "import", "delete"], [0, 1, 2], [3]],
]);

test.each(LOGS)("%s", (_, kinds, logged, lost) => {
  expect(lostOf(kinds, logged)).toEqual(lost);
});

/** Wrong events beside that of an import, and the violation. */
const WRONG = table<readonly [name: string, wrong: StoredEvent, expected: RegExp]>([
  ["a second event of a change", event("import", 0), /^2 events of one import of key 1$/],
  ["an event of no change", event("disable", 2), /^an event of no change: /],
  ["another action", { ...event("disable", 1), action: "key.enabled" }, /^the event of a disable of key 1: /],
  ["another key", { ...event("disable", 1), keyId: "other" }, /^the event of a disable of key 1: /],
  [
    "another RPC",
    { ...event("disable", 1), call: { ...event("disable", 1).call, rpc: `${SERVICE}/EnableApiKey` } },
    /^the event of a disable of key 1: /,
  ],
  [
    "another caller",
    { ...event("disable", 1), call: { ...event("disable", 1).call, caller: "database:a" } },
    /^the event of a disable of key 1: /,
  ],
]);

test.each(WRONG)("%s is a violation", (_, wrong, expected) => {
  const { violations } = compareEvents(historyOf(["import", "disable"]), [event("import", 0), wrong]);
  expect(violations).toEqual([expect.stringMatching(expected)]);
});

test("each acknowledged change of a signing key has one event", () => {
  const history = new History();
  history.rotations.push({ began: 0, acknowledged: 5, kid: "k" }, { began: 10, acknowledged: null, kid: null });
  history.revocations.push({ began: 20, acknowledged: 25, kid: "k" }, { began: 30, acknowledged: null, kid: "l" });
  const call = { caller: "local:uid 0", method: "local", subject: "uid 0" } as const;
  const events = ["created", "deleted"].map((verb, seq) => ({
    ...{ seq, action: `signing_key.${verb}`, keyId: null, resourceId: "k", call, before: null, after: null },
  }));
  expect(compareSigningKeyEvents(history, events)).toEqual([]);
  expect(compareSigningKeyEvents(history, events.slice(1))).toEqual([
    expect.stringMatching(/^0 events .*created of k/),
  ]);
  expect(compareSigningKeyEvents(history, [...events, ...events])).toHaveLength(2);
});
