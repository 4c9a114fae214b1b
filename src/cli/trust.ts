import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import tls from "node:tls";
import { invalidArgument } from "../domain/errors.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/**
 * Trusts the certificates of a PEM file in this process, in addition to those of Node and `NODE_EXTRA_CA_CERTS`. Throws
 * `INVALID_ARGUMENT` naming `name` if the file has none.
 */
export async function trustCertificates(name: string, file: string): Promise<void> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw invalidArgument(name, `${file} cannot be read (${error.code})`);
  });
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0 || !certificates.every(isCertificate))
    throw invalidArgument(name, `${file} contains no certificate in PEM form`);
  // A named import would fail on Node 24.0 to 24.4, which lack the function.
  if (tls.setDefaultCACertificates === undefined) throw invalidArgument(name, "needs Node 24.5 or later");
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), ...certificates]);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
