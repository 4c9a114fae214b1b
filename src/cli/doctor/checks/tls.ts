import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Check, error, ok, warning } from "../finding.ts";

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
  if (left <= 0) return [error(message, "renew it and restart the server")];
  return [left < SOON ? warning(message, "renew it and restart the server") : ok(message)];
};
