import type { Sql } from "postgres";
import { connectTo, type DatabaseOptions } from "../../src/postgres/connect.ts";
import { parseConnectionUrl } from "../../src/postgres/connection-url.ts";

/** A client of the driver as the service has one for each connection, to the only host of the URL. */
export function connect(options: DatabaseOptions): Sql {
  const [host = { name: "", port: 0 }] = parseConnectionUrl(options.url).hosts;
  return connectTo(options, host);
}
