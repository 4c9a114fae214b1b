import type { Seeded } from "../../support/seeded.ts";
import type { History, Mutation, Register } from "../history.ts";
import type { Effect } from "../register.ts";
import { type Answer, type Json, outcomeOf, reasonOf, refusalOf } from "./answer.ts";
import type { Member } from "./member.ts";
import { chase } from "./verify.ts";

/** What a client works with that changes keys. */
export interface Workplace {
  readonly history: History;
  readonly members: readonly Member[];
  /** Those that changes are sent to. */
  readonly changers: readonly Member[];
  readonly seeded: Seeded;
  /** Told of a key that has just been changed. */
  touched(register: Register): void;
}

/** A change to send, and what it makes of the key. */
export interface Request {
  readonly kind: string;
  readonly effect: Effect;
  send(member: Member): Promise<Answer>;
}

/** Refusals of a repeated call that mean that it, or the one before, has taken effect. */
const DONE: readonly (string | undefined)[] = ["API_KEY_ALREADY_REVOKED", "API_KEY_NOT_FOUND"];

/** Sends a change to any of the nodes for it. The body of the answer that acknowledges it, or null if there was none. */
export async function mutate(
  work: Workplace,
  register: Register,
  { kind, effect, send }: Request,
): Promise<Json | null> {
  const member = work.seeded.pick(work.changers);
  const began = performance.now();
  const mutation: Mutation = { kind, node: member.name, began, acknowledged: null, effect };
  register.mutations.push(mutation);
  const answer = await send(member);
  const ended = performance.now();
  const outcome = outcomeOf(answer);
  work.history.calls.push({ kind: "mutation", node: member.name, began: mutation.began, ended, count: 1, outcome });
  if (answer.status === 200 || isRepeated(register, kind, answer)) {
    mutation.acknowledged = ended;
    mutation.hint = answer.body?.issued_api_key?.hint;
    work.touched(register);
    return answer.body;
  }
  if (outcome === "answered" && refusalOf(answer) === undefined)
    work.history.unexpected.push(describe(mutation, register, answer));
  return null;
}

/** Verifies whatever is known of the key on all nodes, without waiting for them. */
export function chaseKey({ history, members, seeded }: Workplace, register: Register): Promise<void>[] {
  return chase(history, members, register, seeded);
}

function isRepeated({ mutations }: Register, kind: string, answer: Answer): boolean {
  const before = mutations.at(-2);
  return before?.kind === kind && before.acknowledged === null && DONE.includes(reasonOf(answer));
}

function describe({ kind, node }: Mutation, { name, mutations }: Register, { status, body }: Answer): string {
  const done = mutations.map((one) => `${one.kind}${one.acknowledged === null ? "?" : ""}`).join(", ");
  return `${kind} of ${name} (${done}) on ${node}: ${status} ${JSON.stringify(body?.error?.details?.[0])}`;
}
