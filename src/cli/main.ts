#!/usr/bin/env node
import { CommanderError } from "commander";
import { EXIT_STATUS } from "./exit-status.ts";
import { note } from "./output.ts";
import { createProgram } from "./program.ts";
import { handleSignalsAsInit } from "./signals.ts";

handleSignalsAsInit();

const isJson = process.argv.includes("--json");

/** Moves identifiers that begin with a hyphen, as one in 64 of base64url does, behind the options: a `kid` is 43 characters. */
function withIdsLast(args: readonly string[]): string[] {
  const ids = args.filter((argument) => /^-[\w-]{42}$/.test(argument));
  if (ids.length === 0 || args.includes("--")) return [...args];
  return [...args.filter((argument) => !ids.includes(argument)), "--", ...ids];
}

try {
  await createProgram(isJson).parseAsync(withIdsLast(process.argv.slice(2)), { from: "user" });
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT_STATUS.done : EXIT_STATUS.usage;
  else {
    const { exitStatus, explain, explainInJson } = await import("./failure.ts");
    note(isJson ? explainInJson(error) : `keyhold: ${explain(error)}`);
    process.exitCode = exitStatus(error);
  }
}
