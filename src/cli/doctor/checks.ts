import { checkAccess } from "./checks/access.ts";
import { checkConnections } from "./checks/connections.ts";
import { checkDataFolder } from "./checks/data-folder.ts";
import { checkDatabaseTls } from "./checks/database-tls.ts";
import { checkDuplicates } from "./checks/duplicates.ts";
import { checkHosts } from "./checks/hosts.ts";
import { checkNotifications, checkServers } from "./checks/notifications.ts";
import { checkOidc } from "./checks/oidc.ts";
import { checkPort } from "./checks/port.ts";
import { checkReplication } from "./checks/replication.ts";
import { checkRights } from "./checks/rights.ts";
import { checkRootSecretFile, checkRootSecretUse } from "./checks/root-secret.ts";
import { checkSchema } from "./checks/schema.ts";
import { checkClock, checkDurability, checkVersion } from "./checks/server-settings.ts";
import { checkSigningKeys } from "./checks/signing-keys.ts";
import { checkTls } from "./checks/tls.ts";
import type { Check, DatabaseContext } from "./finding.ts";

/** Checks by the name in findings. */
type Checks<C> = Readonly<Record<string, C>>;

/** Checks that run even if the database is unreachable. */
export const LOCAL_CHECKS: Checks<Check> = {
  access: checkAccess,
  port: checkPort,
  tls: checkTls,
  oidc: checkOidc,
  database_tls: checkDatabaseTls,
  database_hosts: checkHosts,
  data_folder: checkDataFolder,
  root_secret: checkRootSecretFile,
};

/** Checks of a reachable database. */
export const DATABASE_CHECKS: Checks<Check<DatabaseContext>> = {
  database_version: checkVersion,
  schema: checkSchema,
  rights: checkRights,
  connections: checkConnections,
  durability: checkDurability,
  replication: checkReplication,
  servers: checkServers,
  clock: checkClock,
  notifications: checkNotifications,
  root_secret_use: checkRootSecretUse,
  raw_keys: checkDuplicates,
  signing_keys: checkSigningKeys,
};
