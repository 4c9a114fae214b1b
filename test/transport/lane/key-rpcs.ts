import { type DescMessage, type Message, toJsonString } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import type { Handler } from "../../../src/api/handler.ts";
import type { Implementation } from "../../../src/api/implementations.ts";
import { invalidArgument, KeyholdError } from "../../../src/errors.ts";
import type { MaybePromise } from "../../../src/lib/maybe-promise.ts";

export const ETAG = '"seen"';

/** The RPCs whose REST paths are of all kinds. Each answers what it was asked, as JSON in a field; some ids make it fail. */
export function keyRpcs(maxRequestBytes: number): Implementation[] {
  const { getIssuedApiKey, listIssuedApiKeys, updateIssuedApiKey, rotateIssuedApiKey } = IssuedApiKeysService.method;
  const get: Handler<typeof getIssuedApiKey> = (request) =>
    behave(request.keyId, () => ({ keyId: request.keyId, name: told(getIssuedApiKey.input, request) }));
  const list: Handler<typeof listIssuedApiKeys> = (request) =>
    behave(request.pageToken, () => ({
      issuedApiKeys: [{ name: told(listIssuedApiKeys.input, request) }],
      nextPageToken: request.pageToken,
    }));
  const update: Handler<typeof updateIssuedApiKey> = (request) => ({ name: told(updateIssuedApiKey.input, request) });
  const rotate: Handler<typeof rotateIssuedApiKey> = (request) =>
    behave(request.keyId, () => ({ secret: told(rotateIssuedApiKey.input, request) }));
  return [
    { method: getIssuedApiKey, handler: get, maxRequestBytes },
    { method: listIssuedApiKeys, handler: list, maxRequestBytes },
    { method: updateIssuedApiKey, handler: update, maxRequestBytes },
    { method: rotateIssuedApiKey, handler: rotate, maxRequestBytes },
    ...otherRpcs(maxRequestBytes),
  ];
}

function otherRpcs(maxRequestBytes: number): Implementation[] {
  const { revokeApiKey } = ApiKeysService.method;
  const { deleteImportedApiKey } = ImportedApiKeysService.method;
  const { getJwks } = DerivedKeysService.method;
  const revoke: Handler<typeof revokeApiKey> = (request) => ({ keyId: told(revokeApiKey.input, request) });
  const remove: Handler<typeof deleteImportedApiKey> = (request) => behave(request.keyId, () => ({}));
  const jwks: Handler<typeof getJwks> = (_request, { call }) => {
    call.setHeader("cache-control", "public, max-age=300");
    call.setHeader("etag", ETAG);
    return { keys: [{ kid: "é" }] };
  };
  return [
    { method: revokeApiKey, handler: revoke, maxRequestBytes },
    { method: deleteImportedApiKey, handler: remove, maxRequestBytes },
    { method: getJwks, handler: jwks, maxRequestBytes },
  ];
}

function told(desc: DescMessage, request: Message): string {
  return toJsonString(desc, request);
}

function behave<T>(id: string, answer: () => T): MaybePromise<T> {
  switch (id) {
    case "later":
      return Promise.resolve().then(answer);
    case "gone":
      throw new KeyholdError("API_KEY_NOT_FOUND", "there is no such key");
    case "wrong, later":
      return Promise.reject(invalidArgument("key_id", "is one of those"));
    case "fault":
      throw new Error("the cause, which no caller may see");
    default:
      return answer();
  }
}
