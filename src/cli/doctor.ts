import { systemClock } from "../lib/clock.ts";
import { findConfigErrors, findUnknownVariables, readConfig } from "../server/config/config.ts";
import { error, warning } from "./doctor/finding.ts";
import { type NamedFinding, named, runChecks } from "./doctor/run-checks.ts";
import { type OutputOptions, writeResult } from "./output.ts";

/** Checks this installation and prints findings with remedies. Exits 1 if there is an error. */
export async function doctor(options: OutputOptions): Promise<void> {
  const invalid = findConfigErrors().map((text) => error(text, "correct the variable, then run keyhold doctor again"));
  const unknown = findUnknownVariables().map((text) => warning(text, "correct its name, or remove it"));
  const checked = invalid.length > 0 ? named("configuration", invalid) : await runChecks(readConfig(), systemClock);
  const findings = [...checked, ...named("configuration", unknown)];
  await writeResult(
    options,
    { findings: findings.map((finding) => ({ ...finding })) },
    findings.map(lineOf).join("\n"),
  );
  if (findings.some(({ level }) => level === "error")) process.exitCode = 1;
}

const MARKS = { ok: "ok     ", warning: "WARNING", error: "ERROR  " };

/** The remedy goes on a separate line, where it is not cut off. */
function lineOf({ check, level, message, remedy }: NamedFinding): string {
  const line = `${MARKS[level]}  ${check.padEnd(16)}  ${message}`;
  return remedy === null ? line : `${line}\n${" ".repeat(27)}-> ${remedy}`;
}
