import { expect, test } from "vitest";
import { table } from "../support/conformance.ts";
import { History } from "./history.ts";
import { compareUsage, type EndedProcess, expectUsage } from "./usage.ts";

/** Ten verdicts of a key on a node, at 1 to 10 s, three that do not count, and a batch of 3 without a response. */
function historyOf(): History {
  const history = new History();
  const register = history.register("issued");
  const credential = { type: "raw", text: "", generation: 1, secret: 1, scopes: [] } as never;
  const read = { node: "node 1", by: "REST single", began: 1_000, ended: 1_000 };
  for (let time = 1_000; time <= 10_000; time += 1_000)
    history.verdict(register, credential, { ...read, ended: time, observed: "REVOKED" });
  history.verdict(register, credential, { ...read, observed: "NOT_FOUND" });
  for (const by of ["derive", "self-revoke"])
    history.verdict(register, credential, { ...read, by, observed: "REVOKED" });
  history.calls.push({ kind: "verify", node: "node 1", began: 11_500, ended: 12_000, count: 3, outcome: "lost" });
  return history;
}

const KILLED: EndedProcess = { node: "node 1", storedUntil: 6_000, ended: 11_000, restarted: 12_400 };
const DOWN: EndedProcess = { ...KILLED, restarted: 13_000 };
const STOPPED: EndedProcess = { ...DOWN, storedUntil: Number.POSITIVE_INFINITY };

const CASES = table([
  { what: "each verdict once", stored: 10, ended: [], isGood: true },
  { what: "calls without a response, too", stored: 13, ended: [], isGood: true },
  { what: "more than the calls", stored: 14, ended: [], isGood: false },
  { what: "a verdict less", stored: 9, ended: [], isGood: false },
  { what: "less by the last ones of a killed node", stored: 6, ended: [KILLED], isGood: true },
  { what: "less than a killed node had stored", stored: 5, ended: [KILLED], isGood: false },
  { what: "less although another node was killed", stored: 9, ended: [{ ...KILLED, node: "node 2" }], isGood: false },
  { what: "less although the node was stopped", stored: 9, ended: [STOPPED], isGood: false },
  { what: "less than what was answered after a kill", stored: 9, ended: [{ ...KILLED, ended: 3 }], isGood: false },
  { what: "a call that a starting node may have received", stored: 13, ended: [KILLED], isGood: true },
  { what: "a call that no process received", stored: 11, ended: [DOWN], isGood: false },
]);

test.each(CASES)("a usage that has $what is judged", ({ stored, ended, isGood }) => {
  expect(compareUsage(stored, expectUsage(historyOf(), ended))).toHaveLength(isGood ? 0 : 1);
});
