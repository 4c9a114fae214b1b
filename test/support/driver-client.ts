import type { Sql } from "postgres";
import { connectTo, type DatabaseOptions } from "../../src/postgres/connection/connect.ts";
import { parseConnectionUrl } from "../../src/postgres/connection/connection-url.ts";

/** Opens a client of the driver like the service does for each connection, to the only host of the URL. */
export function connect(options: DatabaseOptions): Sql {
  const [host = { name: "", port: 0 }] = parseConnectionUrl(options.url).hosts;
  return connectTo(options, host);
}
