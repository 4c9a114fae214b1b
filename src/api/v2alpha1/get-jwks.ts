import type { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { jwksEtag } from "../../token/jwks.ts";
import type { ApiContext, Handler } from "../handler.ts";

/** Seconds for which a verifier may cache the document. It should reload it at once for a new `kid`. */
const MAX_AGE = 300;

export function getJwks({ jwks }: ApiContext): Handler<typeof DerivedKeysService.method.getJwks> {
  return async (_request, _principal, call) => {
    const document = await jwks();
    call.setHeader("cache-control", `public, max-age=${MAX_AGE}`);
    call.setHeader("etag", jwksEtag(document));
    return { keys: [...document.keys] };
  };
}
