import { join } from "node:path";
import { startDatabase } from "../faults/database.ts";
import { eventually, type Serving, serve } from "../support/keyhold.ts";
import { type Answer, issue, paths, restClient } from "../support/rest.ts";
import { CHECKOUT, COMMAND, migrate } from "./release.ts";

const ENVIRONMENT = { KEYHOLD_ROOT_SECRET: "upgrade-root-secret-0123456789-abcdefghijklmn", KEYHOLD_LEASE_TTL: "1s" };

/**
 * Disables a key beside servers of release 0.1, which would accept it. Returns the failures: it must be refused while one has a lease;
 * while the key is disabled, none may start.
 */
export async function disableBesideOldServers(dir: string, oldCheckout: string): Promise<string[]> {
  const failures: string[] = [];
  const check = (name: string, isRight: boolean, found: unknown) => {
    if (!isRight) failures.push(`${name}: ${JSON.stringify(found)}`);
  };
  const database = await startDatabase(dir, (url, serverRole) => migrate(CHECKOUT, url, serverRole));
  const environment = { ...ENVIRONMENT, KEYHOLD_DATABASE_URL: database.url(database.port) };
  const servers: Serving[] = [];
  const start = async (main?: string) => {
    const server = await serve(environment, main);
    servers.push(server);
    return server;
  };
  const startOld = () => start(join(oldCheckout, COMMAND));
  try {
    const rest = restClient(await start());
    const { secret, keyId } = await issue(rest);
    const set = (verb: "disable" | "enable") => rest("POST", `${paths.keys}/${keyId}:${verb}`, {});
    const verifyAt = (server: Serving) => restClient(server)("POST", `${paths.keys}:verify`, { credential: secret });
    const isAcceptedAt = async (server: Serving) => (await verifyAt(server)).body.is_valid === true;

    const first = await startOld();
    await eventually(() => isAcceptedAt(first));
    const refused = await set("disable");
    check("disabling while 0.1 runs", isRefused(refused, first), refused.body);
    check("the key after it", await isAcceptedAt(first), "rejected");

    first.kill("SIGTERM");
    await first.ended;
    check("disabling without 0.1", (await set("disable")).status === 200, "refused");
    const reason = await startOld().then(
      () => "it started",
      (error) => String(error),
    );
    check("0.1 that starts", /a key has the control DISABLED, which server \S+ \(0\.1/.test(reason), reason);

    check("enabling", (await set("enable")).status === 200, "refused");
    const back = await startOld();
    await eventually(() => isAcceptedAt(back));
    return failures;
  } finally {
    for (const server of servers) server.kill("SIGTERM");
    await Promise.all(servers.map(({ ended }) => ended));
    await database.stop();
  }
}

/** Whether the error names this server. */
function isRefused({ status, body }: Answer, { pid }: Serving): boolean {
  const [info] = body.error?.details ?? [];
  return status === 409 && info?.reason === "SERVERS_OUTDATED" && info.metadata.servers.includes(`:${pid} (0.1`);
}
