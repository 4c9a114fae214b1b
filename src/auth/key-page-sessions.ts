import { ADMIN_SCOPE, includesScope } from "../domain/admin-scopes.ts";
import { keyPageScopes } from "../domain/key-page.ts";
import type { Identity } from "../domain/principal.ts";
import type { Verdict } from "../domain/verdict.ts";
import type { KeyPageCreator, OpenKeyPageSession } from "../keys/key-page.ts";
import type { Clock } from "../lib/clock.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import type { Authenticate } from "./guard.ts";
import { unauthenticated } from "./rejected-credential.ts";

export interface KeyPageSessionsOptions {
  readonly open: (sealed: string) => Promise<OpenKeyPageSession | undefined>;
  /** Verifies a version of the secret of an admin token, wherever it is used: the owner of keys has another address than the creator. */
  readonly verifyVersion: (keyId: string, secretVersion: number) => MaybePromise<Verdict>;
  /** Whether a caller without a credential may do everything, and so create sessions. */
  readonly allowUnauthenticated: boolean;
  readonly clock: Clock;
}

/** Authenticates the owner of keys by a session of the key page, for as long as its creator could create it. */
export function keyPageSessions({
  open,
  verifyVersion,
  allowUnauthenticated,
  clock,
}: KeyPageSessionsOptions): Authenticate {
  const scopesOf = ({ method, keyId, secretVersion, expireTime }: KeyPageCreator): MaybePromise<Creator> => {
    if (expireTime !== undefined && expireTime <= clock.now()) return NOTHING;
    if (method === "none") return allowUnauthenticated ? EVERYTHING : NOTHING;
    // An access token of an issuer cannot be revoked.
    if (keyId === undefined || secretVersion === undefined) return EVERYTHING;
    return andThen(verifyVersion(keyId, secretVersion), (verdict) =>
      verdict.valid ? { scopes: verdict.scopes, actorIds: verdict.key.restrictedToActorIds } : NOTHING,
    );
  };
  return async (sealed) => {
    const session = await open(sealed);
    if (session === undefined) throw unauthenticated("the session has ended", { reason: "EXPIRED" });
    const { grant, creator, expireTime } = session;
    const { keyId } = creator;
    const { scopes, actorIds } = await scopesOf(creator);
    if (!includesScope(scopes, "keyhold:key-pages") || actorIds?.includes(grant.actorId) === false) {
      const message = "the session has ended: the credential that created it is not valid any more";
      throw unauthenticated(message, { reason: "INVALID_TOKEN", keyId: keyId ?? null });
    }
    const identity: Identity = {
      ...{ method: "key-page", subject: grant.actorId, scopes: keyPageScopes(grant) },
      restrictions: { actorIds: [grant.actorId], keyPage: grant },
      expireTime: new Date(expireTime),
    };
    return keyId === undefined ? identity : { ...identity, keyId };
  };
}

/** What the creator of a session may do now. */
interface Creator {
  readonly scopes: readonly string[];
  /** Null: keys of any actor. */
  readonly actorIds: readonly string[] | null;
}

const NOTHING: Creator = { scopes: [], actorIds: null };
const EVERYTHING: Creator = { scopes: [ADMIN_SCOPE], actorIds: null };
