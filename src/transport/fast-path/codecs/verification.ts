import type { DescMethodUnary } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Rpc } from "../../../api/rpc.ts";
import type { Codec } from "../route.ts";
import type { FastRpc } from "../routes.ts";
import { protoCodec } from "./proto.ts";
import { readBatchVerifyJson, readVerifyJson } from "./verify-requests.ts";
import { writeBatchVerifyJson, writeVerifyJson } from "./verify-responses.ts";

const { verifyApiKey, batchVerifyApiKeys } = ApiKeysService.method;

const JSON_CODECS: ReadonlyMap<DescMethodUnary, Codec> = new Map<DescMethodUnary, Codec>([
  [verifyApiKey, { read: readVerifyJson, write: writeVerifyJson }],
  [batchVerifyApiKeys, { read: readBatchVerifyJson, write: writeBatchVerifyJson }],
]);

/** The RPCs that the fast path serves: verification, and nothing that changes anything. */
export function verificationRpcs(rpcs: readonly Rpc[]): FastRpc[] {
  return rpcs.flatMap((rpc) => {
    const json = JSON_CODECS.get(rpc.method);
    return json === undefined ? [] : [{ rpc, json, proto: protoCodec(rpc) }];
  });
}
