import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../server/config/config.ts";
import { explain } from "../failure.ts";
import { checkAccess, checkGateways, checkOidc, checkTls } from "./checks/access.ts";
import { checkDatabaseTls, checkHosts } from "./checks/database-url.ts";
import { checkAdminTokens, checkDuplicates } from "./checks/keys.ts";
import { checkDataFolder, checkPort } from "./checks/machine.ts";
import { checkNotifications, checkServers } from "./checks/notifications.ts";
import { checkReplication } from "./checks/replication.ts";
import { checkRights, checkSchema } from "./checks/schema.ts";
import {
  checkHashSecrets,
  checkRootSecretFile,
  checkRootSecretUse,
  checkSigningKeys,
  checkTreeKey,
  checkWebhookSecrets,
  readRings,
} from "./checks/secrets.ts";
import {
  checkClock,
  checkConnections,
  checkDurability,
  checkSessionSettings,
  checkVersion,
} from "./checks/server-settings.ts";
import { openDatabase } from "./database.ts";
import { type Check, type CheckContext, type DatabaseContext, error, type Finding, ok } from "./finding.ts";

type Checks<C> = Readonly<Record<string, C>>;

/** Checks that run even if the database is unreachable. */
const LOCAL_CHECKS: Checks<Check> = {
  access: checkAccess,
  port: checkPort,
  tls: checkTls,
  oidc: checkOidc,
  gateways: checkGateways,
  database_tls: checkDatabaseTls,
  database_hosts: checkHosts,
  data_folder: checkDataFolder,
  root_secret: checkRootSecretFile,
};

const DATABASE_CHECKS: Checks<Check<DatabaseContext>> = {
  database_version: checkVersion,
  schema: checkSchema,
  rights: checkRights,
  connections: checkConnections,
  durability: checkDurability,
  session_settings: checkSessionSettings,
  replication: checkReplication,
  servers: checkServers,
  clock: checkClock,
  notifications: checkNotifications,
  root_secret_use: checkRootSecretUse,
  admin_tokens: checkAdminTokens,
  raw_keys: checkDuplicates,
  signing_keys: checkSigningKeys,
  hash_secrets: checkHashSecrets,
  audit_key: checkTreeKey,
  webhook_secrets: checkWebhookSecrets,
};

export type NamedFinding = ReturnType<typeof named>[number];

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
    const findings = await runAll(DATABASE_CHECKS, { ...context, ...opened });
    return [...named("database", [ok("the database is reachable")]), ...findings];
  } finally {
    await opened.close();
  }
}

/** Runs checks sequentially: the database has one connection. */
async function runAll<C extends CheckContext>(checks: Checks<Check<C>>, context: C): Promise<NamedFinding[]> {
  const found: NamedFinding[] = [];
  for (const [name, check] of Object.entries(checks)) {
    const findings = await check(context).catch((reason) => [
      error(`the check failed: ${explain(reason)}`, "fix the cause and run `keyhold doctor` again"),
    ]);
    found.push(...named(name, findings));
  }
  return found;
}

export function named(check: string, findings: readonly Finding[]) {
  return findings.map((finding) => ({ check, ...finding }));
}
