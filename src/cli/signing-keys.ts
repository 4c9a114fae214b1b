import { writeServerLog } from "../postgres/connection/server-log.ts";
import { type RevokeOptions, revokeSigningKey } from "../signing/revoke.ts";
import { type RotateOptions, rotateSigningKey } from "../signing/signing.ts";
import { newestFirst, type SigningKeyRecord } from "../token/signing-key.ts";
import { withResources } from "./command.ts";
import { type OutputOptions, write, writeJson, writeResult } from "./output.ts";

export function listSigningKeys(options: OutputOptions): Promise<void> {
  return withResources(async ({ signing }) => {
    const keys = newestFirst(await signing.store.list());
    if (options.json === true) return writeJson(keys.map(toJson));
    const lines = keys.map(({ kid, publicJwk, createTime, retireTime, tokensExpireTime }) => {
      const state = retireTime === null ? "active" : `retired ${retireTime.toISOString()}`;
      const tokens = tokensExpireTime === null ? "no tokens" : `tokens valid until ${tokensExpireTime.toISOString()}`;
      return `${kid}  ${publicJwk.alg}  created ${createTime.toISOString()}  ${state}  ${tokens}\n`;
    });
    return write(lines);
  });
}

function toJson({ kid, publicJwk, createTime, retireTime, tokensExpireTime }: SigningKeyRecord) {
  return {
    kid,
    algorithm: publicJwk.alg,
    state: retireTime === null ? "active" : "retired",
    create_time: createTime.toISOString(),
    ...(retireTime === null ? {} : { retire_time: retireTime.toISOString() }),
    ...(tokensExpireTime === null ? {} : { tokens_expire_time: tokensExpireTime.toISOString() }),
  };
}

export function revokeSigningKeys(kid: string, options: RevokeOptions & OutputOptions): Promise<void> {
  return withResources(async ({ signing, database }) => {
    const { replacement } = await revokeSigningKey(signing, kid, options);
    const result = { kid, ...(replacement !== null && { active: replacement }) };
    await writeServerLog(database, "signing key revoked", result);
    const active = replacement === null ? "" : ` The active signing key is now ${replacement}.`;
    await writeResult(options, result, `Revoked ${kid}.${active}`);
  });
}

export function rotateSigningKeys(options: RotateOptions & OutputOptions): Promise<void> {
  return withResources(async ({ signing, database }) => {
    const { kid, publicJwk } = await rotateSigningKey(signing, options);
    const result = { kid, algorithm: publicJwk.alg };
    await writeServerLog(database, "signing key rotated", result);
    await writeResult(options, result, kid);
  });
}
