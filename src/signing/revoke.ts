import { invalidArgument } from "../domain/errors.ts";
import type { NewSigningKey } from "../token/signing-key.ts";
import { activeAlgorithm, generate, type RevokedKids, requireActiveKey, type SigningContext } from "./signing.ts";

export interface RevokeOptions {
  /** Whether to revoke the active key although it does not unwrap, so that the new one may be unusable for the servers. */
  readonly force?: boolean;
}

/**
 * Deletes a signing key. When it returns, no node accepts a token that was signed with it, whenever that was, and none publishes it. If it is
 * the active key, a new one with the same algorithm takes its place at once; otherwise `replacement` is null.
 *
 * @throws `INVALID_ARGUMENT` if there is no such key. Then too no node accepts its tokens: an earlier call may have deleted it.
 */
export async function revokeSigningKey(
  context: SigningContext,
  kid: string,
  { force = false }: RevokeOptions = {},
): Promise<Pick<RevokedKids, "replacement">> {
  const { store, clock } = context;
  const record = (await store.list()).find((key) => key.kid === kid);
  // A retired key is deleted whether it unwraps or not, and never becomes active again.
  const newKey = record?.retireTime === null ? await replacementFor(context, force) : null;
  const { kid: revoked, replacement } = await store.revoke(kid, newKey, new Date(clock.now()));
  if (revoked === null) throw invalidArgument("kid", `signing key ${kid} does not exist or is already revoked`);
  return { replacement };
}

/** Rejects if the active key does not unwrap: then the root secret is not that of the servers, and they could not use the new key. */
async function replacementFor(context: SigningContext, force: boolean): Promise<NewSigningKey> {
  if (!force) await requireActiveKey(context);
  return generate(context, await activeAlgorithm(context.store));
}
