import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../server/config/config.ts";
import { explain } from "../failure.ts";
import { readRings } from "./checks/root-secret.ts";
import { DATABASE_CHECKS, LOCAL_CHECKS } from "./checks.ts";
import { openDatabase } from "./database.ts";
import { type Check, type CheckContext, type DatabaseContext, error, type Finding, ok } from "./finding.ts";

/** A finding with the name of its check. */
export interface NamedFinding extends Finding {
  readonly check: string;
}

/** Runs all checks. They change nothing; a check that fails does not stop the others. */
export async function runChecks(config: Config, clock: Clock): Promise<NamedFinding[]> {
  const { rings, findings } = await readRings(config);
  const context: CheckContext = { config, clock, rings };
  const local = await runAll(LOCAL_CHECKS, context);
  return [...local, ...named("root_secret", findings), ...(await runDatabaseChecks(context))];
}

async function runDatabaseChecks(context: CheckContext): Promise<NamedFinding[]> {
  const opened = await openDatabase(context.config);
  if ("level" in opened) return named("database", [opened]);
  try {
    const databaseContext: DatabaseContext = { ...context, ...opened };
    const findings = await runAll(DATABASE_CHECKS, databaseContext);
    return [...named("database", [ok("the database is reachable")]), ...findings];
  } finally {
    await opened.close();
  }
}

/** Runs checks sequentially: the database has one connection. */
async function runAll<P extends CheckContext>(
  checks: Readonly<Record<string, Check<P>>>,
  context: P,
): Promise<NamedFinding[]> {
  const found: NamedFinding[] = [];
  for (const [name, check] of Object.entries(checks))
    found.push(...named(name, await check(context).catch((reason) => [checkFailed(reason)])));
  return found;
}

function checkFailed(reason: unknown): Finding {
  return error(`the check failed: ${explain(reason)}`, "fix the cause and run keyhold doctor again");
}

function named(check: string, findings: readonly Finding[]): NamedFinding[] {
  return findings.map((finding) => ({ check, ...finding }));
}
