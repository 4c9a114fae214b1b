import type { ClusterNode } from "../cluster.ts";
import { GrpcClient } from "./grpc-client.ts";
import { RestClient } from "./rest-client.ts";

/** A node as its clients see it. */
export interface Member {
  readonly name: string;
  readonly rest: RestClient;
  readonly grpc: GrpcClient;
}

export function memberOf({ name, port }: ClusterNode): Member {
  return { name, rest: new RestClient(port), grpc: new GrpcClient(port) };
}

/** The paths of the API. */
export const PATHS = {
  issued: "/v2alpha1/admin/issuedApiKeys",
  imported: "/v2alpha1/admin/importedApiKeys",
  keys: "/v2alpha1/admin/apiKeys",
  selfRevoke: "/v2alpha1/apiKeys:selfRevoke",
  jwks: "/v2alpha1/derivedKeys/jwks.json",
} as const;
