import type { ServerKey } from "../../domain/server-keys.ts";
import { equalBytes } from "../../lib/bytes.ts";
import { type RejectedToken, rejected, type TokenContent, type TokenVerdict } from "../token.ts";
import type { Grant } from "./caveat-kinds.ts";
import { chainSignature } from "./chain.ts";
import type { Macaroon } from "./format.ts";
import { parseGrant, restrictGrant } from "./grant.ts";
import { type MacaroonIdentifier, parseIdentifier } from "./identifier.ts";
import { tryParseMacaroon } from "./text.ts";

export interface MacaroonVerification {
  /** The ring "macaroon-root". */
  readonly keys: { find(id: string): ServerKey | undefined };
  readonly issuer: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Verifies a Keyhold macaroon: format, signature, caveats, expiry, in that order, so that no caveat is read before the signature is verified.
 * An unknown or third-party caveat fails like an invalid signature. The token has the scopes and expiry that the holder's caveats leave. Never
 * throws.
 */
export function verifyMacaroon(text: string, { keys, issuer, now }: MacaroonVerification): TokenVerdict {
  const macaroon = tryParseMacaroon(text);
  if (macaroon === undefined) return rejected("INVALID_FORMAT", "the token is not a well-formed macaroon");
  const identifier = parseIdentifier(macaroon.identifier);
  if (identifier === undefined) return rejected("INVALID_FORMAT", "the macaroon identifier is not from Keyhold");
  const rejection = checkSignature(macaroon, keys.find(identifier.rootKeyId), issuer);
  if (rejection !== undefined) return rejection;
  const grant = readGrant(macaroon, identifier.mintedCaveats);
  if (grant === undefined)
    return rejected("SIGNATURE_INVALID", "a caveat of the macaroon is unknown, malformed or not satisfied");
  const token = toToken(identifier, grant, issuer);
  if (now >= grant.expireTime) return { ...rejected("EXPIRED", "the macaroon has expired"), expired: token };
  return { ok: true, token };
}

/** Compares the location, which the signature does not cover: no bit of a macaroon may change unnoticed. */
function checkSignature(macaroon: Macaroon, key: ServerKey | undefined, issuer: string): RejectedToken | undefined {
  if (macaroon.location !== issuer) return rejected("SIGNATURE_INVALID", "the macaroon has a different issuer");
  if (key === undefined) return rejected("SIGNATURE_INVALID", "the macaroon has an unknown root key");
  if (macaroon.caveats.some((caveat) => caveat.thirdParty !== undefined)) {
    return rejected("SIGNATURE_INVALID", "third-party caveats are not supported");
  }
  const conditions = macaroon.caveats.map((caveat) => caveat.identifier);
  const expected = chainSignature(key.secret.export(), macaroon.identifier, conditions);
  if (!equalBytes(expected, macaroon.signature))
    return rejected("SIGNATURE_INVALID", "the signature of the macaroon is not valid");
  return undefined;
}

/** Returns the grant of the first `minted` caveats, restricted by those appended by holders. */
function readGrant(macaroon: Macaroon, minted: number): Grant | undefined {
  const conditions = macaroon.caveats.map((caveat) => caveat.identifier);
  // Nobody can remove a caveat, so too few of them is a bug: no grant.
  if (conditions.length < minted) return undefined;
  let grant = parseGrant(conditions.slice(0, minted));
  for (const condition of conditions.slice(minted)) {
    if (grant === undefined) return undefined;
    grant = restrictGrant(grant, condition);
  }
  return grant;
}

function toToken(identifier: MacaroonIdentifier, grant: Grant, issuer: string): TokenContent {
  const { tokenId, keyId, secretVersion, issueTime, parentId } = identifier;
  return { tokenId, keyId, secretVersion, issuer, issueTime, ...grant, ...(parentId !== undefined && { parentId }) };
}
