import type { Registry } from "@bufbuild/protobuf";
import type { Rpc } from "../../api/rpc.ts";
import { type CallCounters, rpcName } from "../call-metrics.ts";
import { readRestRules } from "../rest/http-rule.ts";
import { connectRoute } from "./connect.ts";
import { grpcRoute } from "./grpc.ts";
import { restRoute } from "./rest.ts";
import type { Codec, FastRoute } from "./route.ts";

/** An RPC that the fast path serves, and its messages as bytes. */
export interface FastRpc {
  readonly rpc: Rpc;
  readonly json: Codec;
  readonly proto: Codec;
}

/** What POST leads to: by path, then by content type. */
export type RouteTable = ReadonlyMap<string, ReadonlyMap<string, FastRoute>>;

const JSON_TYPES = ["application/json", "application/json; charset=utf-8"];
const PROTO_TYPES = ["application/proto"];
const GRPC_TYPES = ["application/grpc", "application/grpc+proto"];

/** The routes of RPCs over REST, Connect and gRPC. `registry` has the types of error details. */
export function makeFastRoutes(rpcs: readonly FastRpc[], counters: CallCounters, registry: Registry): RouteTable {
  const table = new Map<string, Map<string, FastRoute>>();
  for (const { rpc, json, proto } of rpcs) {
    const byType = [
      ...typed(JSON_TYPES, connectRoute(rpc, json, "json", counters)),
      ...typed(PROTO_TYPES, connectRoute(rpc, proto, "proto", counters)),
      ...typed(GRPC_TYPES, grpcRoute(rpc, proto, counters)),
    ];
    table.set(`/${rpcName(rpc)}`, new Map(byType));
    const rest = new Map(typed(JSON_TYPES, restRoute(rpc, json, counters, registry)));
    for (const path of restPaths(rpc)) table.set(path, rest);
  }
  return table;
}

function typed(types: readonly string[], route: FastRoute): [type: string, route: FastRoute][] {
  return types.map((type) => [type, route]);
}

/** The paths without variables whose request body is the whole message. */
function restPaths({ method }: Rpc): string[] {
  const bindings = readRestRules(method).filter(
    ({ httpMethod, variables, body }) => httpMethod === "POST" && variables.length === 0 && body.kind === "whole",
  );
  return bindings.map(({ template }) => template.text);
}
