import { toError } from "../../lib/to-error.ts";
import { connectTo } from "./connect.ts";
import { addressOf, type Host, parseConnectionUrl } from "./connection-url.ts";
import { describeFailure, firstAnswer } from "./primary.ts";
import { serverId } from "./server-position.ts";

export interface HostReport {
  readonly address: string;
  readonly kind: "primary" | "standby" | "unreachable";
  /** Why it is unreachable, as a predicate that follows the address; otherwise empty. */
  readonly failure: string;
  /** The identity of a primary. */
  readonly server: string | null;
}

/** Queries the state of every host of the URL concurrently, each with a time limit of `timeout` milliseconds. */
export function readHosts(url: string, timeout: number): Promise<HostReport[]> {
  return Promise.all(parseConnectionUrl(url).hosts.map((host) => readHost(url, host, timeout)));
}

async function readHost(url: string, host: Host, timeout: number): Promise<HostReport> {
  const options = { url, statementTimeout: timeout, prepare: false };
  const sql = connectTo(options, host);
  const report = { address: addressOf(host), failure: "", server: null };
  try {
    const asked = sql<{ server: string | null }[]>`
      SELECT CASE WHEN NOT pg_is_in_recovery() THEN ${serverId(sql)} END AS server`;
    const [row] = await firstAnswer(asked, timeout);
    const server = row?.server ?? null;
    return { ...report, kind: server === null ? "standby" : "primary", server };
  } catch (error) {
    return { ...report, kind: "unreachable", failure: describeFailure(toError(error)) };
  } finally {
    void sql.end({ timeout: 0 });
  }
}
