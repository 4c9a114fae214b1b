import { isLoopback } from "../../../server/config/config.ts";
import { type Check, ok, warning } from "../finding.ts";

/** Checks authentication and transport encryption. */
export const checkAccess: Check = async ({ config: { auth, host, tls } }) => {
  const open = auth.length === 0 || auth.includes("none");
  const who = auth.length === 0 ? "every program on this machine" : "everyone who can reach the port";
  return [
    open
      ? warning(`${who} has full access`, "set KEYHOLD_AUTH=admin-token and run keyhold admin token create")
      : ok(`callers are authenticated by ${auth.join(", ")}`),
    ...(tls === null && !isLoopback(host)
      ? [warning(`${host} is served without TLS`, "set KEYHOLD_TLS_CERT_FILE, or terminate TLS at a proxy")]
      : []),
  ];
};
