import type { DescMethod } from "@bufbuild/protobuf";
import { createContext, useContext } from "react";
import type { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import type { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import type { WhoAmIResponse } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import type { HmacKeysService } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import type { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import type { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import type { WebhookEndpointsService } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";

interface Services {
  ActorsService: typeof ActorsService;
  ApiKeysService: typeof ApiKeysService;
  AuditService: typeof AuditService;
  HmacKeysService: typeof HmacKeysService;
  ImportedApiKeysService: typeof ImportedApiKeysService;
  IssuedApiKeysService: typeof IssuedApiKeysService;
  UsageService: typeof UsageService;
  WebhookEndpointsService: typeof WebhookEndpointsService;
}

/** The name of an RPC, such as `ApiKeysService/ListApiKeys`: a page can require it without loading its service. */
export type RpcName = {
  [S in keyof Services]: `${S}/${Capitalize<keyof Services[S]["method"] & string>}`;
}[keyof Services];

export const CallerContext = createContext<WhoAmIResponse | null>(null);

/** Returns who uses the page. */
export function useCaller(): WhoAmIResponse {
  const caller = useContext(CallerContext);
  if (caller === null) throw new Error("the page is used outside of a session");
  return caller;
}

/** Returns whether the server permits the caller to call RPCs. A page offers only what its caller may do. */
export function useCan(): (...rpcs: readonly (DescMethod | RpcName)[]) => boolean {
  const { permittedRpcs } = useCaller();
  return (...rpcs) => rpcs.every((rpc) => permittedRpcs.includes(fullName(rpc)));
}

function fullName(rpc: DescMethod | RpcName): string {
  return typeof rpc === "string" ? `keyhold.v2alpha1.${rpc}` : `${rpc.parent.typeName}/${rpc.name}`;
}
