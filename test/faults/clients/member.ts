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

export function closeMembers(members: readonly Member[]): void {
  for (const { rest, grpc } of members) {
    rest.close();
    grpc.close();
  }
}
