/** Codes of an untrusted server certificate (OpenSSL, `X509_verify_cert_error_string`). */
const UNTRUSTED =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?)$/;

/** Node's text of an OpenSSL error, such as `…:SSL routines:tls_validate_record_header:wrong version number:…`. */
const OPENSSL_TEXT = /:SSL routines:[^:]*:([^:\n]+)/;

/** Returns why `fetch` failed to reach `baseUrl`, with a remedy for common causes. */
export function unreachableMessage(baseUrl: string, error: unknown): string {
  const { text, code } = rootCause(error);
  return `${baseUrl} is unreachable: ${OPENSSL_TEXT.exec(text)?.[1] ?? text}${hint(baseUrl, code)}`;
}

/** Returns the innermost cause of an error. Node's `fetch` wraps the cause; browsers do not expose it. */
export function rootCause(error: unknown): { readonly text: string; readonly code: string } {
  if (!(error instanceof Error)) return { text: String(error), code: "" };
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  if (inner instanceof Error) return rootCause(inner);
  const code = "code" in error ? String(error.code) : "";
  return { text: error.message || code || error.name, code };
}

function hint(baseUrl: string, code: string): string {
  if (UNTRUSTED.test(code)) return "; to trust its certificate authority, set --ca-file or NODE_EXTRA_CA_CERTS";
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER") return "; if the server has no TLS, use http://";
  const isCut = code === "UND_ERR_SOCKET" || code === "ECONNRESET";
  return isCut && baseUrl.startsWith("http:") ? "; if the server requires TLS, use https://" : "";
}
