import { expect, test } from "vitest";
import { History, type Mutation } from "./history.ts";
import { judge } from "./judge.ts";
import { type Credential, created, deleted, type Effect, valid } from "./register.ts";

const TOKEN: Credential = { type: "JWT", text: "", incarnation: 2, secret: 2, scopes: ["a"] };

/** A raw key that was imported, deleted and imported again; then the database is set back to the first import. */
function restoredHistory(): { history: History; lost: Set<Mutation> } {
  const history = new History();
  const register = history.register("imported");
  const change = (began: number, effect: Effect): Mutation => {
    return { kind: "change", node: "node 1", began, acknowledged: began + 5, effect };
  };
  const changes = [created(1, ["a"]), deleted, created(2, ["b"])].map((effect, place) => change(place * 10, effect));
  register.mutations.push(...changes);
  return { history, lost: new Set(changes.slice(1)) };
}

function verdict({ history, lost }: ReturnType<typeof restoredHistory>, credential: Credential, said: string) {
  for (const register of history.registers)
    history.verdict(register, credential, { node: "node 1", by: "REST single", began: 50, ended: 51, said });
  return judge(history, lost);
}

test("a token of a raw key whose last import was lost is a token of the import before it", () => {
  expect(verdict(restoredHistory(), TOKEN, valid(["a"]))).toEqual([]);
});

test("its verdict must be that of the import before it", () => {
  expect(verdict(restoredHistory(), TOKEN, "REVOKED")).toHaveLength(1);
});

test("a token of an import that was not lost is of no other", () => {
  const { history } = restoredHistory();
  expect(verdict({ history, lost: new Set() }, { ...TOKEN, incarnation: 1, secret: 1 }, valid(["a"]))).toHaveLength(1);
});

test("a token of an earlier import is of no other, whatever was lost", () => {
  const { history } = restoredHistory();
  const [, , last] = history.registers[0]?.mutations ?? [];
  const lost = new Set(last === undefined ? [] : [last]);
  expect(verdict({ history, lost }, { ...TOKEN, incarnation: 1, secret: 1 }, valid(["a"]))).toHaveLength(1);
});
