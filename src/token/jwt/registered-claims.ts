import type { JsonObject } from "../../lib/json.ts";
import { RESERVED_CLAIMS, rejectClaims } from "./claims.ts";

/** The names in the IANA registry "JSON Web Token Claims" (RFC 7519 §10.1), as updated on 2026-07-20, in its order. */
const NAMES = `
  iss sub aud exp nbf iat jti name given_name family_name middle_name nickname preferred_username profile picture website email
  email_verified gender birthdate zoneinfo locale phone_number phone_number_verified address updated_at azp nonce auth_time at_hash
  c_hash acr amr sub_jwk cnf sip_from_tag sip_date sip_callid sip_cseq_num sip_via_branch orig dest mky events toe txn rph sid vot vtm
  attest origid act scope client_id may_act jcard at_use_nbr div opt vc vp sph ace_profile cnonce exi roles groups entitlements
  token_introspection eat_nonce ueid sueids oemid hwmodel hwversion oemboot dbgstat location eat_profile submods uptime bootcount
  bootseed dloas swname swversion manifests measurements measres intuse cdniv cdnicrit cdniip cdniuc cdniets cdnistt cdnistd
  sig_val_claims authorization_details verified_claims place_of_birth nationalities birth_family_name birth_given_name birth_middle_name
  salutation title msisdn also_known_as htm htu ath atc sub_id rcd rcdi crn msgi _claim_names _claim_sources rdap_allowed_purposes
  rdap_dnt_allowed geohash _sd ... _sd_alg sd_hash consumerPlmnId consumerSnpnId producerPlmnId producerSnpnId producerSnssaiList
  producerNsiList producerNfSetId producerNfServiceSetId sourceNfInstanceId analyticsIdList resOwnerId cmw jwks metadata constraints
  crit ref delegation logo_uri authority_hints trust_anchor_hints trust_marks trust_mark_issuers trust_mark_owners metadata_policy
  metadata_policy_crit source_endpoint keys trust_mark_type trust_chain trust_anchor status status_list ttl stpl`;

/** Claim names whose meaning is defined by a standard. */
export const REGISTERED_CLAIMS: ReadonlySet<string> = new Set(NAMES.trim().split(/\s+/));

/**
 * Rejects custom claims with a registered name that is neither ours nor in `allowed`: by the standard, readers would
 * take `email` or `groups` for a statement of the issuer. Throws `INVALID_ARGUMENT` naming `custom_claims.<claim>`.
 */
export function checkRegisteredClaims(claims: JsonObject, allowed: ReadonlySet<string>): void {
  rejectClaims(
    claims,
    (name) => REGISTERED_CLAIMS.has(name) && !RESERVED_CLAIMS.has(name) && !allowed.has(name),
    "is a registered claim of JSON Web Tokens; KEYHOLD_ALLOWED_CLAIMS of the server can allow it",
  );
}
