import { unexplained, wronglySigned } from "./checker.ts";
import type { History, Read } from "./history.ts";

/** Something that was said and should not have been. `began` is when the call did. */
export interface Violation {
  readonly began: number;
  readonly text: string;
}

/** All violations of a history, in the order of time. */
export function judge(history: History): Violation[] {
  const reads = history.registers.flatMap(({ mutations, reads }) => unexplained(mutations, reads));
  const signatures = wronglySigned(history.rotations, history.signatures);
  return [
    ...reads.map((read) => ({ began: read.began, text: describe(read) })),
    ...signatures.map(({ began, node, kid }) => ({
      began,
      text: `${node} signed with the retired key ${kid} at ${at(began)}`,
    })),
  ].sort((a, b) => a.began - b.began);
}

/** The changes around it, so that the reason may be seen; nothing of a credential. */
function describe({ register, node, by, began, ended, said }: Read): string {
  const around = register.mutations
    .filter((one) => one.began <= ended && (one.acknowledged ?? began) > began - 20_000)
    .map(
      (one) => `${one.kind} on ${one.node} ${at(one.began)}-${one.acknowledged === null ? "?" : at(one.acknowledged)}`,
    );
  return `${register.name}: ${by} on ${node} ${at(began)}-${at(ended)} said "${said}" after ${around.join(", ")}`;
}

function at(time: number): string {
  return `${(time / 1000).toFixed(4)}s`;
}
