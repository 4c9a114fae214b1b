import { systemClock } from "../lib/clock.ts";
import { findConfigErrors, findUnknownVariables, readConfig } from "../server/config/config.ts";
import { error, warning } from "./doctor/finding.ts";
import { type NamedFinding, named, runChecks } from "./doctor/run-checks.ts";
import { type OutputOptions, onOneLine, type Text, write, writeJson } from "./output.ts";

/** Checks this installation and prints findings with remedies. Exits 1 if there is an error. */
export async function doctor(options: OutputOptions): Promise<void> {
  const invalid = findConfigErrors().map((text) =>
    error(text, "correct the variable, then run `keyhold doctor` again"),
  );
  const unknown = findUnknownVariables().map((text) => warning(text, "correct its name, or remove the variable"));
  const checked = invalid.length > 0 ? named("configuration", invalid) : await runChecks(readConfig(), systemClock);
  const findings = [...checked, ...named("configuration", unknown)];
  if (options.json === true) await writeJson({ findings });
  else await write(findings.map(lineOf));
  if (findings.some(({ level }) => level === "error")) process.exitCode = 1;
}

const MARKS = {
  ok: { text: "ok     ", style: "green" },
  warning: { text: "WARNING", style: "yellow" },
  error: { text: "ERROR  ", style: "red" },
} as const;

/** The remedy goes on a separate line, where it is not cut off. */
function lineOf({ check, level, message, remedy }: NamedFinding): Text {
  const line = [MARKS[level], `  ${check.padEnd(16)}  ${onOneLine(message)}\n`];
  return remedy === null ? line : [line, " ".repeat(27), { text: `-> ${onOneLine(remedy)}`, style: "bold" }, "\n"];
}
