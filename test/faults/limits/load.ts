import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "../../support/rest.ts";
import type { Json } from "../clients/answer.ts";
import { outcomeOf } from "../clients/answer.ts";
import type { Member } from "../clients/member.ts";
import type { Answers } from "./quota-oracle.ts";

/** Clients of a key on each node. */
export const CLIENTS = 2;

/** Milliseconds between two calls of a client. */
const PAUSE = 10;

export function newAnswers(): Answers {
  return { admitted: [], denied: [], unanswered: [], unexpected: [] };
}

/** Verifies a credential on all nodes until the signal. Calls that a node does not answer hold up only its own clients. */
export async function verifyOnAll(
  members: readonly Member[],
  credential: string,
  answers: Answers,
  signal: AbortSignal,
): Promise<void> {
  const run = async (member: Member) => {
    while (!signal.aborted) {
      await verifyOnce(member, credential, answers);
      await sleep(PAUSE);
    }
  };
  await Promise.all(members.flatMap((member) => Array.from({ length: CLIENTS }, () => run(member))));
}

async function verifyOnce({ name, rest }: Member, credential: string, answers: Answers): Promise<void> {
  const began = now();
  const answer = await rest.send("POST", `${paths.keys}:verify`, { credential });
  const call = { node: name, began, ended: now() };
  if (outcomeOf(answer) !== "answered") answers.unanswered.push(call);
  else if (answer.body?.is_valid === true) answers.admitted.push(call);
  else if (isLimited(answer.body)) answers.denied.push(call);
  else answers.unexpected.push(`${name} answered ${answer.status} ${JSON.stringify(answer.body)}`);
}

function isLimited({ error_code }: Json): boolean {
  return ["VERIFICATION_ERROR_RATE_LIMITED", "VERIFICATION_ERROR_QUOTA_EXCEEDED"].includes(error_code);
}

/** Milliseconds since the epoch, and monotonic. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}
