import { isLoopback } from "../../../server/config/config.ts";
import { type Check, ok, warning } from "../finding.ts";

/** Who may call, and over what. */
export const checkAccess: Check = async ({ config: { auth, host, tls } }) => {
  const open = auth.length === 0 || auth.includes("none");
  const who = auth.length === 0 ? "every program on this machine" : "everyone who reaches the port";
  return [
    open
      ? warning(`${who} may do everything`, "set KEYHOLD_AUTH=admin-token and make a token: keyhold admin token create")
      : ok(`callers are known by ${auth.join(", ")}`),
    ...(tls === null && !isLoopback(host)
      ? [warning(`${host} is served without TLS`, "set KEYHOLD_TLS_CERT_FILE, or let a proxy in front speak TLS")]
      : []),
  ];
};
