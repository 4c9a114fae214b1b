import { paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import type { Credential } from "../register.ts";
import { type Answer, outcomeOf, verdictText } from "./answer.ts";
import type { Member } from "./member.ts";

/** A credential to verify, and whose it is. */
export interface Shown {
  readonly register: Register;
  readonly credential: Credential;
}

/** The ways to ask for a verdict. */
const WAYS = {
  "REST single": async ({ rest }, [one]) =>
    single(await rest.send("POST", `${paths.keys}:verify`, { credential: one })),
  "gRPC single": async ({ grpc }, [one = ""]) => single(await grpc.verify(one)),
  "REST batch": ({ rest }, texts) => rest.send("POST", `${paths.keys}:batchVerify`, batch(texts)),
  "REST no-cache": ({ rest }, texts) =>
    rest.send("POST", `${paths.keys}:batchVerify`, batch(texts), { "cache-control": "no-cache" }),
  "gRPC batch": ({ grpc }, texts) => grpc.verifyBatch(texts),
} satisfies Record<string, (member: Member, texts: readonly string[]) => Promise<Answer>>;

export type Way = keyof typeof WAYS;

export const SINGLE_WAYS = ["REST single", "gRPC single"] as const;
export const BATCH_WAYS = ["REST batch", "gRPC batch"] as const;

/** Asks this node, by a single way about the first one only, and writes down what it said. */
export function verify(history: History, member: Member, way: Way, shown: readonly Shown[]): Promise<void> {
  return history.follow(ask(history, member, way, shown));
}

async function ask(history: History, member: Member, way: Way, shown: readonly Shown[]): Promise<void> {
  const asked = way.endsWith("single") ? shown.slice(0, 1) : shown;
  if (asked.length === 0) return;
  const texts = asked.map(({ credential }) => credential.text);
  const began = performance.now();
  const answer = await WAYS[way](member, texts);
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
    const said = verdictText(result);
    // No verdict could be reached, which the service says of one of a batch where it says 503 of a single one.
    if (said === "INTERNAL") continue;
    const isStale = result.stale === true;
    if (isStale) history.staleVerdicts++;
    // One that is stale may be what a call was to answer that began so long before.
    const earliest = isStale ? began - history.staleGrace : began;
    history.verdict(register, credential, { node: member.name, by: way, began: earliest, ended, said });
  }
}

/** Verifies whatever is known of a key on all nodes at once, without waiting for any of them. */
export function chase(
  history: History,
  members: readonly Member[],
  register: Register,
  seeded: Seeded,
): Promise<void>[] {
  const shown = register.credentials.map((credential) => ({ register, credential }));
  return members.map((member) => {
    const way = seeded.pick<Way>([...BATCH_WAYS, ...SINGLE_WAYS]);
    return verify(history, member, way, seeded.shuffled(shown));
  });
}

function single(answer: Answer): Answer {
  return answer.status === 200 ? { ...answer, body: { results: [answer.body] } } : answer;
}

function batch(texts: readonly string[]) {
  return { requests: texts.map((credential) => ({ credential })) };
}
