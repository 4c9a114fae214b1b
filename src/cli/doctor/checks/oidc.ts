import { createOidcVerifier } from "../../../token/oidc/verifier.ts";
import { explain } from "../../failure.ts";
import { type Check, error, ok } from "../finding.ts";

/** An unsigned token that makes the verifier look up the issuer's keys. */
const UNSIGNED = [{ alg: "RS256", kid: "keyhold-doctor" }, { iss: "" }]
  .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
  .concat("AAAA")
  .join(".");

/** Checks that the issuer's metadata and keys can be read. */
export const checkOidc: Check = async ({ config: { oidc }, clock }) => {
  if (oidc === null) return [];
  const verdict = await createOidcVerifier({ ...oidc, clock }).verify(UNSIGNED);
  if (verdict.ok || verdict.reason !== "ISSUER_UNAVAILABLE") return [ok(`the keys of ${oidc.issuer} can be read`)];
  return [
    error(
      explain(verdict.cause),
      "KEYHOLD_OIDC_ISSUER must equal the issuer's own identifier and be reachable from this machine",
    ),
  ];
};
