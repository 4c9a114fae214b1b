import { type ApiKeysService, TokenAlgorithm as WireTokenAlgorithm } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalidArgument } from "../errors.ts";
import { deriveToken as derive, type TokenAlgorithm } from "../keys/derive.ts";
import type { ApiContext, Handler } from "./handler.ts";
import { timestamp } from "./records.ts";

const ALGORITHMS: ReadonlyMap<WireTokenAlgorithm, TokenAlgorithm> = new Map([
  [WireTokenAlgorithm.JWT, "JWT"],
  [WireTokenAlgorithm.MACAROON, "MACAROON"],
]);

export function deriveToken({
  derive: context,
  verify,
}: ApiContext): Handler<typeof ApiKeysService.method.deriveToken> {
  return async ({ credential, algorithm: wire, ttl, scopes, customClaims }) => {
    const algorithm = ALGORITHMS.get(wire);
    if (algorithm === undefined) throw invalidArgument("algorithm", "is not one that Keyhold knows");
    const parent = await verify(credential);
    const token = await derive(context, parent, { algorithm, ttl, scopes, claims: customClaims ?? {} });
    const { expireTime, claims, ...rest } = token;
    return { token: { ...rest, scopes: [...rest.scopes], claims, expireTime: timestamp(expireTime) } };
  };
}
