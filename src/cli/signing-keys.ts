import { type RotateOptions, rotateSigningKey } from "../signing/signing.ts";
import { newestFirst } from "../token/signing-key.ts";
import { withFoundation } from "./command.ts";

export function listSigningKeys(): Promise<void> {
  return withFoundation(async ({ signing }) => {
    for (const { kid, createTime, retireTime, tokensExpireTime } of newestFirst(await signing.store.list())) {
      const state = retireTime === null ? "active" : `retired ${retireTime.toISOString()}`;
      const tokens = tokensExpireTime === null ? "no tokens" : `tokens until ${tokensExpireTime.toISOString()}`;
      console.log(`${kid}  created ${createTime.toISOString()}  ${state}  ${tokens}`);
    }
  });
}

export function rotateSigningKeys(options: RotateOptions): Promise<void> {
  return withFoundation(async ({ signing }) => {
    console.log(await rotateSigningKey(signing, options));
  });
}
