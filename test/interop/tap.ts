import type { Outcome } from "../support/programs/run.ts";

/** A check of a client. */
export interface Check {
  readonly name: string;
  readonly holds: boolean;
  /** The found value of a failed check. */
  readonly comment: string;
}

/**
 * Parses TAP version 14 (testanything.org): `ok 1 - name`, `not ok 2 - name`, comments after a failure, and the plan `1..2` at the end.
 * Adds a failed check for a client that exited without its plan or without a failed check.
 */
export function readTap({ status, stdout, stderr }: Outcome): readonly Check[] {
  const lines = stdout.split("\n");
  const checks = lines.flatMap((line, index) => {
    const [, not, name] = /^(not )?ok \d+ - (.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, holds: not === undefined, comment: commentAt(lines, index + 1) }];
  });
  const isWhole = lines.includes(`1..${checks.length}`) && checks.length > 0;
  const isSaid = status === 0 || (status === 1 && checks.some(({ holds }) => !holds));
  if (isWhole && isSaid) return checks;
  return [...checks, { name: "runs to its end", holds: false, comment: `exit status ${status}\n${stderr}` }];
}

function commentAt(lines: readonly string[], index: number): string {
  return /^\s*# (.*)$/.exec(lines[index] ?? "")?.[1] ?? "";
}

/** Prints checks as TAP. */
export function printTap(checks: readonly Check[]): void {
  for (const [index, { name, holds, comment }] of checks.entries()) {
    console.info(`${holds ? "ok" : "not ok"} ${index + 1} - ${name}`);
    if (!holds) console.info(`  # ${comment}`);
  }
  console.info(`1..${checks.length}`);
}
