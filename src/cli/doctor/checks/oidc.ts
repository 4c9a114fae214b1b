import { createOidcVerifier } from "../../../token/oidc/verifier.ts";
import { explain } from "../../failure.ts";
import { type Check, error, ok } from "../finding.ts";

/** Of a form that makes the verifier look for the keys of the issuer, and signed by nobody. */
const UNSIGNED = [{ alg: "RS256", kid: "keyhold-doctor" }, { iss: "" }]
  .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
  .concat("AAAA")
  .join(".");

/** Asks the issuer as the server does, for its metadata and its keys. */
export const checkOidc: Check = async ({ config: { oidc }, clock }) => {
  if (oidc === null) return [];
  const verdict = await createOidcVerifier({ ...oidc, clock }).verify(UNSIGNED);
  if (verdict.ok || verdict.reason !== "ISSUER_UNAVAILABLE") return [ok(`the keys of ${oidc.issuer} can be read`)];
  return [
    error(
      explain(verdict.cause),
      "KEYHOLD_OIDC_ISSUER must be the issuer as it writes itself, and reachable from this machine",
    ),
  ];
};
