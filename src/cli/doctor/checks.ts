import { checkAccess } from "./checks/access.ts";
import { checkClock } from "./checks/clock.ts";
import { checkConnections } from "./checks/connections.ts";
import { checkDataFolder } from "./checks/data-folder.ts";
import { checkDatabaseTls } from "./checks/database-tls.ts";
import { checkDuplicates } from "./checks/duplicates.ts";
import { checkDurability } from "./checks/durability.ts";
import { checkHosts } from "./checks/hosts.ts";
import { checkNotifications } from "./checks/notifications.ts";
import { checkOidc } from "./checks/oidc.ts";
import { checkPort } from "./checks/port.ts";
import { checkReplication } from "./checks/replication.ts";
import { checkRights } from "./checks/rights.ts";
import { checkRootSecretFile, checkRootSecretUse } from "./checks/root-secret.ts";
import { checkSchema } from "./checks/schema.ts";
import { checkServers } from "./checks/servers.ts";
import { checkSigningKeys } from "./checks/signing-keys.ts";
import { checkTls } from "./checks/tls.ts";
import { checkVersion } from "./checks/version.ts";
import type { Answering, Check } from "./finding.ts";

/** By the name that a finding has. */
type Checks<C> = Readonly<Record<string, C>>;

/** What is examined whether the database answers or not. */
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

/** What is asked of the database. */
export const DATABASE_CHECKS: Checks<Check<Answering>> = {
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
