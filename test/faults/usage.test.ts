import { expect, test } from "vitest";
import { table } from "../support/conformance.ts";
import { History } from "./history.ts";
import { compareUsage } from "./usage.ts";

/** Ten verdicts of a key on a node, at 1 to 10 ms, one of an unknown key, and a batch of 3 without a response. */
function historyOf(): History {
  const history = new History();
  const register = history.register("issued");
  const credential = { type: "raw", text: "", generation: 1, secret: 1, scopes: [] } as never;
  const read = { node: "node 1", by: "REST single" };
  for (let time = 1; time <= 10; time++)
    history.verdict(register, credential, { ...read, began: time, ended: time, observed: "REVOKED" });
  history.verdict(register, credential, { ...read, began: 1, ended: 1, observed: "NOT_FOUND" });
  history.calls.push({ kind: "verify", node: "node 1", began: 1, ended: 2, count: 3, outcome: "lost" });
  return history;
}

const KILLED = [{ node: "node 1", from: 6, to: 20 }];

const CASES = table([
  { what: "each verdict once", stored: 10, unstored: [], isGood: true },
  { what: "calls without a response, too", stored: 13, unstored: [], isGood: true },
  { what: "more than the calls", stored: 14, unstored: [], isGood: false },
  { what: "a verdict less", stored: 9, unstored: [], isGood: false },
  { what: "less by the last ones of a killed node", stored: 6, unstored: KILLED, isGood: true },
  { what: "less than a killed node had stored", stored: 5, unstored: KILLED, isGood: false },
  {
    what: "less although another node was killed",
    stored: 9,
    unstored: [{ ...KILLED[0], node: "node 2" }],
    isGood: false,
  },
]);

test.each(CASES)("a usage that has $what is judged", ({ stored, unstored, isGood }) => {
  expect(compareUsage(historyOf(), stored, unstored as never)).toHaveLength(isGood ? 0 : 1);
});
