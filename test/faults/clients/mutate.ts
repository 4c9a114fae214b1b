import { randomUUID } from "node:crypto";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Mutation, Register } from "../history.ts";
import type { Effect } from "../register.ts";
import { type Answer, type Json, outcomeOf, reasonOf, refusalOf } from "./answer.ts";
import type { Member } from "./member.ts";
import { verifyOnAllNodes } from "./verify.ts";

/** The context of a client that changes keys. */
export interface MutationContext {
  readonly history: History;
  readonly members: readonly Member[];
  /** The nodes that changes are sent to. */
  readonly targets: readonly Member[];
  readonly seeded: Seeded;
  /** Whether keys are disabled and enabled. */
  readonly mayDisable: boolean;
  /** Called after a key was changed. */
  onChanged(register: Register): void;
}

/** A change and its effect on the state of the key. */
export interface Request {
  readonly kind: string;
  readonly effect: Effect;
  send(member: Member): Promise<Answer>;
}

/** Errors of a retry after which the change, or the attempt before it, has taken effect. */
const DONE: readonly (string | undefined)[] = ["API_KEY_ALREADY_REVOKED", "API_KEY_NOT_FOUND"];

/** Sends a change to one of its nodes. Returns the body of the acknowledgement, or null if there was none. */
export async function mutate(
  context: MutationContext,
  register: Register,
  { kind, effect, send }: Request,
): Promise<Json | null> {
  const member = context.seeded.pick(context.targets);
  const began = performance.now();
  const callId = randomUUID();
  const mutation: Mutation = { kind, node: member.name, callId, began, acknowledged: null, effect };
  register.mutations.push(mutation);
  const answer = await send({ ...member, rest: member.rest.withHeaders({ "x-request-id": callId }) });
  const ended = performance.now();
  const outcome = outcomeOf(answer);
  context.history.calls.push({ kind: "mutation", node: member.name, began: mutation.began, ended, count: 1, outcome });
  if (answer.status === 200 || isRepeated(register, kind, answer)) {
    mutation.acknowledged = ended;
    context.onChanged(register);
    return answer.body;
  }
  if (outcome === "answered" && refusalOf(answer) === undefined)
    context.history.unexpected.push(describe(mutation, register, answer));
  return null;
}

/** Verifies all known credentials of the key on all nodes, without waiting for the results. */
export function verifyKeyOnAllNodes(
  { history, members, seeded }: MutationContext,
  register: Register,
): Promise<void>[] {
  return verifyOnAllNodes(history, members, register, seeded);
}

function isRepeated({ mutations }: Register, kind: string, answer: Answer): boolean {
  const before = mutations.at(-2);
  return before?.kind === kind && before.acknowledged === null && DONE.includes(reasonOf(answer));
}

function describe({ kind, node }: Mutation, { name, mutations }: Register, { status, body }: Answer): string {
  const done = mutations.map((one) => `${one.kind}${one.acknowledged === null ? "?" : ""}`).join(", ");
  return `${kind} of ${name} (${done}) on ${node}: ${status} ${JSON.stringify(body?.error?.details?.[0])}`;
}
