import { invalidArgument } from "../../domain/errors.ts";
import type { ServerKey } from "../../domain/server-keys.ts";
import type { JsonObject } from "../../lib/json.ts";
import { redactName } from "../../lib/redact-name.ts";
import type { MintedToken, TokenContent } from "../token.ts";
import { isClaimName, isName } from "./caveat-kinds.ts";
import { chainSignature } from "./chain.ts";
import { formatGrant } from "./grant.ts";
import { formatIdentifier, type MacaroonIdentifier, parseIdentifier } from "./identifier.ts";
import { formatMacaroon } from "./text.ts";

export interface MacaroonInput extends TokenContent {
  /** The current key of the ring "macaroon-root". */
  readonly rootKey: ServerKey;
}

/** Leaves room for a holder's caveats below `MACAROON_MAX_CAVEATS`. */
export const MACAROON_MAX_CLAIMS = 64;

/**
 * Mints a macaroon. Throws `INVALID_ARGUMENT` naming `custom_claims` if they do not fit, and `RangeError` on content that
 * `verifyMacaroon` would not accept, which is a programming error.
 */
export function mintMacaroon({ rootKey, ...content }: MacaroonInput): MintedToken {
  checkClaims(content.claims);
  if (!content.scopes.every(isName)) throw new RangeError("a scope must be visible ASCII without spaces");
  if (content.audience?.length === 0 || content.audience?.every(isName) === false)
    throw new RangeError("an audience must be visible ASCII without spaces");
  const conditions = formatGrant(content);
  const identifier = makeIdentifier({ ...content, rootKeyId: rootKey.id, mintedCaveats: conditions.length });
  const signature = chainSignature(rootKey.secret.export(), identifier, conditions);
  const caveats = conditions.map((condition) => ({ identifier: condition, thirdParty: undefined }));
  const token = formatMacaroon({ location: content.issuer, identifier, caveats, signature });
  return { token, expireTime: content.expireTime };
}

function makeIdentifier(content: MacaroonIdentifier): Uint8Array {
  const identifier = formatIdentifier(content);
  if (parseIdentifier(identifier) === undefined) throw new RangeError("an id or a number in the macaroon is malformed");
  return identifier;
}

function checkClaims(claims: JsonObject): void {
  const names = Object.keys(claims);
  if (names.length > MACAROON_MAX_CLAIMS) {
    throw invalidArgument(
      "custom_claims",
      `a macaroon may have at most ${MACAROON_MAX_CLAIMS} claims`,
      "TOO_MANY_ITEMS",
    );
  }
  const bad = names.find((name) => !isClaimName(name));
  if (bad !== undefined) {
    throw invalidArgument(
      "custom_claims",
      `${JSON.stringify(redactName(bad))}: in a macaroon, a claim name must not be empty or contain white space`,
    );
  }
}
