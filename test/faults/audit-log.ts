import type { StoredEvent } from "../support/audit-replay.ts";
import type { History, Mutation } from "./history.ts";

/** For each kind of change, the action of its event and the RPCs that may make it. */
const EVENTS: Readonly<Record<string, readonly [action: string, ...rpcs: string[]]>> = {
  issue: ["key.issued", "CreateIssuedApiKey"],
  import: ["key.imported", "CreateImportedApiKey"],
  update: ["key.updated", "UpdateIssuedApiKey", "UpdateImportedApiKey"],
  rotate: ["key.rotated", "RotateIssuedApiKey"],
  "rotate with grace": ["key.rotated", "RotateIssuedApiKey"],
  disable: ["key.disabled", "DisableApiKey"],
  enable: ["key.enabled", "EnableApiKey"],
  revoke: ["key.revoked", "RevokeApiKey"],
  // Retried by an administrator.
  "self-revoke": ["key.revoked", "SelfRevokeApiKey", "RevokeApiKey"],
  delete: ["key.deleted", "DeleteImportedApiKey"],
};

/** How a log differs from the changes of the clients. */
export interface Differences {
  /** Wrong events, events of no change, and changes with several events. */
  readonly violations: readonly string[];
  /** The acknowledged changes without an event. */
  readonly lost: readonly Mutation[];
}

/** Compares the events of keys with the changes of the clients, which alone change keys, by the request ids of the calls. */
export function compareEvents({ registers }: History, events: readonly StoredEvent[]): Differences {
  const ofKeys = events.filter(({ action }) => action.startsWith("key."));
  const byCall = Map.groupBy(ofKeys, ({ call }) => call.call_id);
  const names = new Map(ofKeys.flatMap(({ keyId, after }) => (after?.name === undefined ? [] : [[keyId, after.name]])));
  const isLogged = ({ callId }: Mutation) => byCall.has(callId);
  const changes = registers.flatMap(({ name, mutations }) => mutations.map((mutation) => ({ name, mutation })));
  const callIds = new Set<string | undefined>(changes.map(({ mutation }) => mutation.callId));
  return {
    violations: [
      ...changes.flatMap(({ name, mutation: { kind, callId } }) => {
        const [event, ...others] = byCall.get(callId) ?? [];
        if (others.length > 0) return [`${others.length + 1} events of one ${kind} of ${name}`];
        const isWrong = event !== undefined && !(names.get(event.keyId) === name && isOf(kind, event));
        return isWrong ? [`the event of a ${kind} of ${name}: ${JSON.stringify(event)}`] : [];
      }),
      ...ofKeys
        .filter(({ call }) => !callIds.has(call.call_id))
        .map((event) => `an event of no change: ${JSON.stringify(event)}`),
    ],
    lost: registers.flatMap(({ mutations }) =>
      mutations.filter((one) => one.acknowledged !== null && !isLogged(one) && !isRepetition(one, mutations, isLogged)),
    ),
  };
}

function isOf(kind: string, { action, keyId, call: { rpc = "", caller } }: StoredEvent): boolean {
  const [expected, ...rpcs] = EVENTS[kind] ?? [];
  const [, name = ""] = rpc.split("/");
  const expectedCaller = name === "SelfRevokeApiKey" ? `secret:${keyId}` : "none:anonymous";
  return action === expected && rpcs.includes(name) && caller === expectedCaller;
}

/** The kinds of changes after which a key is known to be disabled or not. */
const IS_DISABLED: Readonly<Record<string, boolean>> = { issue: false, import: false, disable: true, enable: false };

/**
 * Returns whether an acknowledged change without an event had nothing to change: it repeats an attempt without a response, or the key was
 * already disabled or enabled, by the last change that was acknowledged or by one without a response, which may take effect late.
 */
function isRepetition(
  mutation: Mutation,
  mutations: readonly Mutation[],
  isLogged: (mutation: Mutation) => boolean,
): boolean {
  const { kind } = mutation;
  const before = mutations.slice(0, mutations.indexOf(mutation));
  const isUnanswered = ({ acknowledged }: Mutation) => acknowledged === null;
  if (kind !== "disable" && kind !== "enable") {
    const attempts = before.slice(before.findLastIndex((one) => one.kind !== kind || !isUnanswered(one)) + 1);
    return attempts.some(isLogged);
  }
  const setting = before.filter((one) => isLogged(one) && one.kind in IS_DISABLED);
  const last = setting.findLast((one) => !isUnanswered(one));
  return setting.some((one) => (one === last || isUnanswered(one)) && IS_DISABLED[one.kind] === (kind === "disable"));
}

/** Returns the acknowledged changes of signing keys that do not have exactly one event. */
export function compareSigningKeyEvents({ rotations, revocations }: History, events: readonly StoredEvent[]): string[] {
  const expected = [
    ...rotations.map((one) => ({ ...one, action: "signing_key.created" })),
    ...revocations.map((one) => ({ ...one, action: "signing_key.deleted" })),
  ];
  return expected.flatMap(({ acknowledged, kid, action }) => {
    if (acknowledged === null) return [];
    const own = events.filter((event) => event.action === action && event.resourceId === kid);
    const isGood = own.length === 1 && own.every(({ call }) => call.method === "local");
    return isGood ? [] : [`${own.length} events ${action} of ${kid}: ${JSON.stringify(own)}`];
  });
}
