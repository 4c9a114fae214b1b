import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Config } from "../../../server/config/config.ts";
import { type Danger, dangersOf } from "../../../server/config/dangers.ts";
import { createOidcVerifier } from "../../../token/oidc/verifier.ts";
import { explain } from "../../failure.ts";
import { type Check, error, type Finding, ok, warning } from "../finding.ts";

/** Checks authentication and transport encryption. */
export const checkAccess: Check = async ({ config }) => {
  const { auth } = config;
  const isOpen = auth.length === 0 || auth.includes("none");
  return [...(isOpen ? [] : [ok(`callers are authenticated by ${auth.join(", ")}`)]), ...dangersIn("access", config)];
};

/** Returns the dangers of the configuration that belong to a check. */
function dangersIn(name: Danger["check"], config: Config): readonly Finding[] {
  const dangers = dangersOf(config).filter(({ check }) => check === name);
  return dangers.map(({ message, remedy }) => warning(message, remedy));
}

/** An unsigned token that makes the verifier look up the issuer's keys. */
const UNSIGNED = [{ alg: "RS256", kid: "keyhold-doctor" }, { iss: "" }]
  .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
  .concat("AAAA")
  .join(".");

/** Checks that the issuer's metadata and keys can be read. */
export const checkOidc: Check = async ({ config: { oidc }, clock }) => {
  if (oidc === null) return [];
  const verdict = await createOidcVerifier({ ...oidc, clock }).verify(UNSIGNED);
  if (verdict.ok || verdict.reason !== "ISSUER_UNAVAILABLE")
    return [ok(`the signing keys of ${oidc.issuer} can be fetched`)];
  return [
    error(
      explain(verdict.cause),
      "KEYHOLD_OIDC_ISSUER must equal the `issuer` in the issuer's metadata, and the issuer must be reachable from this machine",
    ),
  ];
};

const SOON = 14 * 86_400_000;

/** Checks the server's certificate: the first of the chain (RFC 8446 §4.4.2). */
export const checkTls: Check = async ({ config: { tls }, clock }) => {
  if (tls === null) return [];
  const [cert, key] = await Promise.all([readFile(tls.certFile), readFile(tls.keyFile)]);
  const certificate = new X509Certificate(cert);
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    return [error(`${tls.keyFile} is not the key of ${tls.certFile}`, "configure a matching certificate and key")];
  const left = certificate.validToDate.getTime() - clock.now();
  const message = `the certificate ${left > 0 ? "is valid until" : "expired at"} ${certificate.validToDate.toISOString()}`;
  if (left <= 0) return [error(message, "renew the certificate and restart the server")];
  return [left < SOON ? warning(message, "renew the certificate and restart the server") : ok(message)];
};

/** Checks who may ask as a gateway, and whether gateways can say who their clients are. */
export const checkGateways: Check = async ({ config }) => {
  const { protocols, callers } = config.gateways;
  if (protocols.length === 0) return [];
  return [
    ...evaluateCallers(config),
    ...dangersIn("gateways", config),
    ...evaluateAddresses(config),
    ...(protocols.includes("ext-authz") ? [ok(RAW_HEADERS)] : []),
    ok(`gateways use ${protocols.join(" and ")}, authenticated by ${callers.join(" or ") || "nothing"}`),
  ];
};

/** Nothing in a message shows whether Envoy has changed it. */
const RAW_HEADERS = "Envoy must set encode_raw_headers: true; otherwise it changes credentials that are not UTF-8";

function evaluateCallers({ auth }: Config): Finding[] {
  if (auth.length > 0) return [];
  const message = "requests from gateways are rejected: requests through a proxy require KEYHOLD_AUTH";
  return [warning(message, "set KEYHOLD_AUTH=admin-token")];
}

/** Over gRPC, Envoy names the address of its own peer. */
function evaluateAddresses({ trustedProxies, gateways }: Config): Finding[] {
  if (trustedProxies.length > 0 || !gateways.protocols.includes("forward-auth")) return [];
  const message =
    "keys that are restricted to addresses are rejected: no gateway is trusted to state the client's address";
  return [warning(message, "set KEYHOLD_TRUSTED_PROXIES to the addresses of the gateways")];
}
