/** Prints TAP version 14 (testanything.org). */

let count = 0;
let failed = 0;

export type Step = (name: string, holds: boolean, found: unknown) => void;

/** Ends a topic, because later steps depend on the failed one. */
class Broken extends Error {}

export async function topic(name: string, body: (ok: Step) => Promise<void> | void): Promise<void> {
  try {
    await body((step, holds, found) => {
      line(holds, `${name}: ${step}`, JSON.stringify(found));
      if (!holds) throw new Broken();
    });
  } catch (error) {
    if (!(error instanceof Broken)) line(false, name, String(error));
  }
}

function line(holds: boolean, name: string, found: string): void {
  count += 1;
  if (!holds) failed += 1;
  print(holds ? `ok ${count} - ${name}` : `not ok ${count} - ${name}\n  # ${found}`);
}

/** Prints the plan and sets the exit status. */
export function end(): void {
  print(`1..${count}`);
  process.exitCode = failed > 0 ? 1 : 0;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
