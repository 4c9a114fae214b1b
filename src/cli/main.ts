#!/usr/bin/env node
import { CommanderError } from "commander";
import { EXIT_STATUS } from "./exit-status.ts";
import { note } from "./output.ts";
import { createProgram } from "./program.ts";
import { handleSignalsAsInit } from "./signals.ts";

handleSignalsAsInit();

const isJson = process.argv.includes("--json");

try {
  await createProgram(isJson).parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT_STATUS.done : EXIT_STATUS.usage;
  else {
    const { exitStatus, explain, explainInJson } = await import("./failure.ts");
    note(isJson ? explainInJson(error) : `keyhold: ${explain(error)}`);
    process.exitCode = exitStatus(error);
  }
}
