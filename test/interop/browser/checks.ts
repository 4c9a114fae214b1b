import type { Check } from "../tap.ts";

/** Adds a check; `found` is shown if it fails. */
export type Ok = (name: string, holds: boolean, found?: unknown) => void;

/** Runs steps of a client, each of which adds checks. An error ends its step and is a failed check. */
export async function collect(...steps: ((ok: Ok) => Promise<void>)[]): Promise<Check[]> {
  const checks: Check[] = [];
  const ok: Ok = (name, holds, found) => checks.push({ name, holds, comment: holds ? "" : shown(found) });
  for (const step of steps) {
    await step(ok).catch((error: unknown) => ok("runs to its end", false, error));
  }
  return checks;
}

function shown(value: unknown): string {
  if (value instanceof Error) return `${value} ${value.stack}`.replaceAll("\n", " ");
  const text = JSON.stringify(value, (_, member) => (typeof member === "bigint" ? String(member) : member));
  return `found ${text}`;
}
