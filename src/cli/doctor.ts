import { systemClock } from "../lib/clock.ts";
import { findConfigErrors, findUnknownVariables, readConfig } from "../server/config/config.ts";
import { examine, type NamedFinding } from "./doctor/examine.ts";
import { error, warning } from "./doctor/finding.ts";
import { type OutputOptions, write, writeJson } from "./output.ts";

/** Examines this installation and says what to do. Exit status 1 if there is an error. */
export async function doctor({ json = false }: OutputOptions): Promise<void> {
  const wrong = findConfigErrors();
  const examined = wrong.length > 0 ? wrong.map(ofConfiguration) : await examine(readConfig(), systemClock);
  const findings = [...examined, ...findUnknownVariables().map(ofUnknownVariable)];
  if (json) await writeJson({ findings: findings.map((finding) => ({ ...finding })) });
  else await write(findings.map((finding) => `${lineOf(finding)}\n`).join(""));
  if (findings.some(({ level }) => level === "error")) process.exitCode = 1;
}

function ofConfiguration(message: string): NamedFinding {
  return { check: "configuration", ...error(message, "correct the variable, then run keyhold doctor again") };
}

function ofUnknownVariable(message: string): NamedFinding {
  return { check: "configuration", ...warning(message, "correct its name, or remove it") };
}

const MARKS = { ok: "ok     ", warning: "WARNING", error: "ERROR  " };

/** The remedy stands below, where it is not cut off. */
function lineOf({ check, level, message, remedy }: NamedFinding): string {
  const line = `${MARKS[level]}  ${check.padEnd(16)}  ${message}`;
  return remedy === null ? line : `${line}\n${" ".repeat(27)}-> ${remedy}`;
}
