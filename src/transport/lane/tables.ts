import type { Rpc } from "../../api/rpc.ts";
import type { Routes } from "../rest/routes.ts";
import { jsonCodec, protoCodec } from "./codec.ts";
import { connectRoute } from "./connect.ts";
import { grpcRoute } from "./grpc.ts";
import { restRoute } from "./rest.ts";
import type { Route } from "./route.ts";

/** What the lane serves: by path, then by content type. */
export type Table = ReadonlyMap<string, ReadonlyMap<string, Route>>;

export interface Tables {
  readonly http1: Table;
  readonly http2: Table;
}

const JSON_TYPES = ["application/json", "application/json; charset=utf-8"] as const;

/** Connect and, over HTTP/2, gRPC for every RPC; REST for those paths that hold no part of the request. */
export function makeTables(rpcs: readonly Rpc[], rest: Routes): Tables {
  const onRest = restPaths(rest);
  const onConnect = new Map<string, Map<string, Route>>();
  const onBoth = new Map<string, Map<string, Route>>();
  for (const rpc of rpcs) {
    const path = `/${rpc.method.parent.typeName}/${rpc.method.name}`;
    const [json, proto] = [jsonCodec(rpc), protoCodec(rpc)];
    const connect = [
      ...typed(connectRoute(rpc, json), JSON_TYPES),
      ...typed(connectRoute(rpc, proto), ["application/proto"]),
    ];
    const grpc = [
      ...typed(grpcRoute(rpc, proto), ["application/grpc", "application/grpc+proto"]),
      ...typed(grpcRoute(rpc, json), ["application/grpc+json"]),
    ];
    onConnect.set(path, new Map(connect));
    onBoth.set(path, new Map([...connect, ...grpc]));
  }
  return { http1: new Map([...onRest, ...onConnect]), http2: new Map([...onRest, ...onBoth]) };
}

function typed(route: Route, types: readonly string[]): [type: string, route: Route][] {
  return types.map((type) => [type, route]);
}

function restPaths({ router, templates, registry }: Routes): [path: string, routes: Map<string, Route>][] {
  return templates.flatMap(({ httpMethod, template: { text, segments } }) => {
    const isPlain = segments.every((segment) => segment.kind === "literal" && !text.includes("%"));
    const found = router.find("POST", text);
    if (httpMethod !== "POST" || !isPlain || found.kind !== "found" || found.value.body.kind === "none") return [];
    return [[text, new Map(typed(restRoute(found.value, registry), JSON_TYPES))]];
  });
}
