import { expect, test } from "vitest";
import { History, type Mutation } from "./history.ts";
import { type Credential, created, deleted, disabled, type Effect, enabled, valid } from "./register.ts";
import { findViolations } from "./violations.ts";

const TOKEN: Credential = { type: "JWT", text: "", generation: 2, secret: 2, scopes: ["a"] };

/** A raw key that was imported, deleted and imported again; then the database was restored to the first import. */
function restoredHistory(): { history: History; lost: Set<Mutation> } {
  const history = new History();
  const register = history.register("imported");
  const change = (began: number, effect: Effect): Mutation => {
    return { kind: "change", node: "node 1", callId: "", began, acknowledged: began + 5, effect };
  };
  const changes = [created(1, ["a"]), deleted, created(2, ["b"])].map((effect, place) => change(place * 10, effect));
  register.mutations.push(...changes);
  return { history, lost: new Set(changes.slice(1)) };
}

function verdict({ history, lost }: ReturnType<typeof restoredHistory>, credential: Credential, observed: string) {
  for (const register of history.registers)
    history.verdict(register, credential, { node: "node 1", by: "REST single", began: 50, ended: 51, observed });
  return findViolations(history, lost);
}

test("after the loss of an import, a token of it counts as a token of the import before it", () => {
  expect(verdict(restoredHistory(), TOKEN, valid(["a"]))).toEqual([]);
});

test("the verdict on such a token must be that of the import before it", () => {
  expect(verdict(restoredHistory(), TOKEN, "REVOKED")).toHaveLength(1);
});

test("without a loss, a token belongs only to its own import", () => {
  const { history } = restoredHistory();
  expect(verdict({ history, lost: new Set() }, { ...TOKEN, generation: 1, secret: 1 }, valid(["a"]))).toHaveLength(1);
});

test("a token of an earlier import belongs only to that import, even after a loss", () => {
  const { history } = restoredHistory();
  const [, , last] = history.registers[0]?.mutations ?? [];
  const lost = new Set(last === undefined ? [] : [last]);
  expect(verdict({ history, lost }, { ...TOKEN, generation: 1, secret: 1 }, valid(["a"]))).toHaveLength(1);
});

test.each([
  ["a disabled key accepted", [disabled], valid(["a"])],
  ["an enabled key rejected", [disabled, enabled], "DISABLED"],
] as const)("%s is a violation, which names the verdict", (_, effects, observed) => {
  const history = new History();
  const register = history.register("issued");
  const change = (effect: Effect, place: number): Mutation => {
    return { kind: "change", node: "node 1", callId: "", began: place * 10, acknowledged: place * 10 + 5, effect };
  };
  register.mutations.push(...[created(1, ["a"]), ...effects].map(change));
  const token = { ...TOKEN, generation: 1, secret: 1 };
  const found = verdict({ history, lost: new Set() }, token, observed);
  expect(found.map(({ text }) => text)).toEqual([expect.stringContaining(observed)]);
});
