import { readServers } from "../../../postgres/replication.ts";
import { type Answering, type Check, error, ok } from "../finding.ts";

/** Data and notifications must come from one server: else a node answers nothing, since it is not notified of what it reads. */
export const checkServers: Check<Answering> = async ({ config, database, url }) => {
  const [data, notifications] = await readServers(database, config.databaseListenUrl ?? url);
  if (data === notifications) return [ok(`data and notifications come from one server (${describe(data)})`)];
  const message = `data and notifications come from two servers (${describe(data)}; ${describe(notifications)}): nothing is verified or changed until they are one`;
  const remedy =
    "let KEYHOLD_DATABASE_URL and KEYHOLD_DATABASE_LISTEN_URL lead to the same primary: move both together";
  return [error(message, remedy)];
};

/** `<system identifier>/<timeline>/<start time>` for people. */
function describe(server: string): string {
  const [identifier, timeline = "", start = ""] = server.split("/");
  const since = new Date(Number(start) * 1000).toISOString();
  return `system identifier ${identifier}, timeline ${Number.parseInt(timeline, 16)}, started ${since}`;
}
