import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../server/config/config.ts";
import { explain } from "../failure.ts";
import { readRings } from "./checks/root-secret.ts";
import { DATABASE_CHECKS, LOCAL_CHECKS } from "./checks.ts";
import { openDatabase } from "./database.ts";
import { type Answering, type Check, type CheckContext, error, type Finding, ok } from "./finding.ts";

/** A finding with the name of the check that made it. */
export interface NamedFinding extends Finding {
  readonly check: string;
}

/** Examines all that the configuration names. Nothing is changed, and what does not answer keeps nothing else from being examined. */
export async function examine(config: Config, clock: Clock): Promise<NamedFinding[]> {
  const { rings, findings } = await readRings(config);
  const context: CheckContext = { config, clock, rings };
  const local = await runAll(LOCAL_CHECKS, context);
  return [...local, ...named("root_secret", findings), ...(await examineDatabase(context))];
}

async function examineDatabase(context: CheckContext): Promise<NamedFinding[]> {
  const opened = await openDatabase(context.config);
  if ("level" in opened) return named("database", [opened]);
  try {
    const answering: Answering = { ...context, ...opened };
    return [...named("database", [ok("the database answers")]), ...(await runAll(DATABASE_CHECKS, answering))];
  } finally {
    await opened.close();
  }
}

/** One after the other: the database is asked over one connection. */
async function runAll<P extends CheckContext>(
  checks: Readonly<Record<string, Check<P>>>,
  context: P,
): Promise<NamedFinding[]> {
  const found: NamedFinding[] = [];
  for (const [name, check] of Object.entries(checks))
    found.push(...named(name, await check(context).catch((reason) => [couldNot(reason)])));
  return found;
}

function couldNot(reason: unknown): Finding {
  return error(`could not be examined: ${explain(reason)}`, "mend what the message says, and run keyhold doctor again");
}

function named(check: string, findings: readonly Finding[]): NamedFinding[] {
  return findings.map((finding) => ({ check, ...finding }));
}
