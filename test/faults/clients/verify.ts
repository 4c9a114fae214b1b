import { paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import type { Credential } from "../register.ts";
import { type Answer, outcomeOf, verdictText } from "./answer.ts";
import type { Member } from "./member.ts";

/** A credential and its key. */
export interface KnownCredential {
  readonly register: Register;
  readonly credential: Credential;
}

/** The methods of requesting verdicts. */
const METHODS = {
  "REST single": async ({ rest }, [one]) =>
    single(await rest.send("POST", `${paths.keys}:verify`, { credential: one })),
  "gRPC single": async ({ grpc }, [one = ""]) => single(await grpc.verify(one)),
  "REST batch": ({ rest }, texts) => rest.send("POST", `${paths.keys}:batchVerify`, batch(texts)),
  "REST no-cache": ({ rest }, texts) =>
    rest.send("POST", `${paths.keys}:batchVerify`, batch(texts), { "cache-control": "no-cache" }),
  "gRPC batch": ({ grpc }, texts) => grpc.verifyBatch(texts),
} satisfies Record<string, (member: Member, texts: readonly string[]) => Promise<Answer>>;

export type Method = keyof typeof METHODS;

export const SINGLE_METHODS = ["REST single", "gRPC single"] as const;
export const BATCH_METHODS = ["REST batch", "gRPC batch"] as const;

/** Verifies credentials on this node and records the verdicts. A single method verifies only the first one. */
export function verify(
  history: History,
  member: Member,
  way: Method,
  selected: readonly KnownCredential[],
): Promise<void> {
  return history.track(send(history, member, way, selected));
}

async function send(
  history: History,
  member: Member,
  way: Method,
  selected: readonly KnownCredential[],
): Promise<void> {
  const asked = way.endsWith("single") ? selected.slice(0, 1) : selected;
  if (asked.length === 0) return;
  const texts = asked.map(({ credential }) => credential.text);
  const began = performance.now();
  const answer = await METHODS[way](member, texts);
  const ended = performance.now();
  const outcome = outcomeOf(answer);
  history.calls.push({ kind: "verify", node: member.name, began, ended, count: asked.length, outcome });
  if (outcome !== "answered") return;
  if (answer.status !== 200) {
    history.unexpected.push(`${way} on ${member.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return;
  }
  for (const [place, { register, credential }] of asked.entries()) {
    const result = answer.body.results[place];
    const observed = verdictText(result);
    // A batch reports INTERNAL for an item that a single call would answer with 503.
    if (observed === "INTERNAL") continue;
    const isStale = result.stale === true;
    if (isStale) history.staleVerdicts++;
    // A stale verdict may be as old as the grace period.
    const earliest = isStale ? began - history.staleGrace : began;
    history.verdict(register, credential, { node: member.name, by: way, began: earliest, ended, observed });
  }
}

/** Verifies all known credentials of a key on all nodes concurrently, without waiting for the results. */
export function verifyOnAllNodes(
  history: History,
  members: readonly Member[],
  register: Register,
  seeded: Seeded,
): Promise<void>[] {
  const selected = register.credentials.map((credential) => ({ register, credential }));
  return members.map((member) => {
    const way = seeded.pick<Method>([...BATCH_METHODS, ...SINGLE_METHODS]);
    return verify(history, member, way, seeded.shuffled(selected));
  });
}

function single(answer: Answer): Answer {
  return answer.status === 200 ? { ...answer, body: { results: [answer.body] } } : answer;
}

function batch(texts: readonly string[]) {
  return { requests: texts.map((credential) => ({ credential })) };
}
