import { systemClock } from "../lib/clock.ts";
import { findConfigErrors, findUnknownVariables, readConfig } from "../server/config/config.ts";
import { error, warning } from "./doctor/finding.ts";
import { type NamedFinding, runChecks } from "./doctor/run-checks.ts";
import { type OutputOptions, write, writeJson } from "./output.ts";

/** Checks this installation and prints findings with remedies. Exits 1 if there is an error. */
export async function doctor({ json = false }: OutputOptions): Promise<void> {
  const invalid = findConfigErrors();
  const checked = invalid.length > 0 ? invalid.map(configError) : await runChecks(readConfig(), systemClock);
  const findings = [...checked, ...findUnknownVariables().map(unknownVariable)];
  if (json) await writeJson({ findings: findings.map((finding) => ({ ...finding })) });
  else await write(findings.map((finding) => `${lineOf(finding)}\n`).join(""));
  if (findings.some(({ level }) => level === "error")) process.exitCode = 1;
}

function configError(message: string): NamedFinding {
  return { check: "configuration", ...error(message, "correct the variable, then run keyhold doctor again") };
}

function unknownVariable(message: string): NamedFinding {
  return { check: "configuration", ...warning(message, "correct its name, or remove it") };
}

const MARKS = { ok: "ok     ", warning: "WARNING", error: "ERROR  " };

/** The remedy goes on a separate line, where it is not cut off. */
function lineOf({ check, level, message, remedy }: NamedFinding): string {
  const line = `${MARKS[level]}  ${check.padEnd(16)}  ${message}`;
  return remedy === null ? line : `${line}\n${" ".repeat(27)}-> ${remedy}`;
}
