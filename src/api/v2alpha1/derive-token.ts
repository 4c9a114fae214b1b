import {
  type ApiKeysService,
  TokenAlgorithm as WireTokenAlgorithm,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { type DerivedToken, deriveToken as derive, type TokenAlgorithm } from "../../keys/derive.ts";
import { andThen } from "../../lib/maybe-promise.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { factsOf } from "../log-fields.ts";
import { timestamp } from "./key-resources.ts";

const ALGORITHMS: ReadonlyMap<WireTokenAlgorithm, TokenAlgorithm> = new Map([
  [WireTokenAlgorithm.JWT, "JWT"],
  [WireTokenAlgorithm.MACAROON, "MACAROON"],
]);

export function deriveToken({
  derive: context,
  verifyStrictly,
}: ApiContext): Handler<typeof ApiKeysService.method.deriveToken> {
  return ({ credential, algorithm: wire, ttl, scopes, customClaims }, principal, call) => {
    const algorithm = ALGORITHMS.get(wire);
    if (algorithm === undefined) throw invalidArgument("algorithm", "is not one that Keyhold knows");
    const derivation = { algorithm, ttl, scopes, claims: customClaims ?? {} };
    return andThen(verifyStrictly(credential), (parent) => {
      call.log.add(factsOf(parent));
      return andThen(derive(context, principal, parent, derivation), toResponse);
    });
  };
}

function toResponse({ expireTime, claims, scopes, ...rest }: DerivedToken) {
  return { token: { ...rest, scopes: [...scopes], claims, expireTime: timestamp(expireTime) } };
}
