import type { ServerKey } from "../../domain/server-keys.ts";
import { equalBytes } from "../../lib/bytes.ts";
import type { Grant } from "./caveat-kinds.ts";
import { chainSignature } from "./chain.ts";
import type { Macaroon } from "./format.ts";
import { parseGrant, restrictGrant } from "./grant.ts";
import { type MacaroonIdentifier, parseIdentifier } from "./identifier.ts";
import type { MacaroonContent } from "./mint.ts";
import { tryParseMacaroon } from "./text.ts";

export interface RefusedMacaroon {
  readonly ok: false;
  readonly reason: "INVALID_FORMAT" | "SIGNATURE_INVALID" | "EXPIRED";
  /** For a person; holds nothing of the macaroon. */
  readonly message: string;
}

/** `token` says what all caveats together leave: the scopes and the expiry of the holder, not only those of the server. */
export type MacaroonVerdict = { readonly ok: true; readonly token: MacaroonContent } | RefusedMacaroon;

export interface MacaroonVerification {
  /** The ring "macaroon-root". */
  readonly keys: { find(id: string): ServerKey | undefined };
  readonly issuer: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Judges a macaroon of ours: its form, its signature, its caveats, its expiry, in that order, so that no caveat is looked at
 * before the signature has been found good. A caveat that is not known, or whose discharge would be somebody else's, fails it
 * as a bad signature does. Never throws.
 */
export function verifyMacaroon(text: string, { keys, issuer, now }: MacaroonVerification): MacaroonVerdict {
  const macaroon = tryParseMacaroon(text);
  if (macaroon === undefined) return refused("INVALID_FORMAT", "the token is not a well-formed macaroon");
  const identifier = parseIdentifier(macaroon.identifier);
  if (identifier === undefined) return refused("INVALID_FORMAT", "the macaroon has no identifier of this service");
  const refusal = checkSignature(macaroon, keys.find(identifier.rootKeyId), issuer);
  if (refusal !== undefined) return refusal;
  const grant = readGrant(macaroon, identifier.mintedCaveats);
  if (grant === undefined)
    return refused("SIGNATURE_INVALID", "a caveat of the macaroon is unknown, malformed or not met");
  if (now >= grant.expireTime) return refused("EXPIRED", "the macaroon has expired");
  return { ok: true, token: toToken(identifier, grant, issuer) };
}

/** The chain leaves the location out, so it is compared instead: no bit of a macaroon may change unnoticed. */
function checkSignature(macaroon: Macaroon, key: ServerKey | undefined, issuer: string): RefusedMacaroon | undefined {
  if (macaroon.location !== issuer) return refused("SIGNATURE_INVALID", "the macaroon is of another issuer");
  if (key === undefined) return refused("SIGNATURE_INVALID", "the root key of the macaroon is not known");
  if (macaroon.caveats.some((caveat) => caveat.thirdParty !== undefined)) {
    return refused("SIGNATURE_INVALID", "third-party caveats are not supported");
  }
  const conditions = macaroon.caveats.map((caveat) => caveat.identifier);
  const expected = chainSignature(key.secret.export(), macaroon.identifier, conditions);
  if (!equalBytes(expected, macaroon.signature))
    return refused("SIGNATURE_INVALID", "the signature of the macaroon is not valid");
  return undefined;
}

/** What the first `minted` caveats grant under those that holders have appended. */
function readGrant(macaroon: Macaroon, minted: number): Grant | undefined {
  const conditions = macaroon.caveats.map((caveat) => caveat.identifier);
  // The chain lets nobody take a caveat away, so too few of them is our own fault, and no grant.
  if (conditions.length < minted) return undefined;
  let grant = parseGrant(conditions.slice(0, minted));
  for (const condition of conditions.slice(minted)) {
    if (grant === undefined) return undefined;
    grant = restrictGrant(grant, condition);
  }
  return grant;
}

function toToken(identifier: MacaroonIdentifier, grant: Grant, issuer: string): MacaroonContent {
  const { tokenId, keyId, secretVersion, issueTime, parentId } = identifier;
  return {
    tokenId,
    keyId,
    secretVersion,
    issuer,
    issueTime,
    ...grant,
    ...(parentId === undefined ? {} : { parentId }),
  };
}

function refused(reason: RefusedMacaroon["reason"], message: string): RefusedMacaroon {
  return { ok: false, reason, message };
}
