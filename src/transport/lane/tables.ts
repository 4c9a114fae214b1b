import type { Rpc } from "../../api/rpc.ts";
import type { CallCounters } from "../calls.ts";
import type { Routes } from "../rest/routes.ts";
import { jsonCodec, protoCodec } from "./codec.ts";
import { connectRoute } from "./connect.ts";
import { grpcRoute } from "./grpc.ts";
import { JSON_TYPES, restFinder } from "./rest.ts";
import type { FindRoute, Route } from "./route.ts";

/** What the lane serves. */
export interface Tables {
  readonly http1: FindRoute;
  readonly http2: FindRoute;
}

/** What POST leads to: by path, then by content type. */
type Table = ReadonlyMap<string, ReadonlyMap<string, Route>>;

/** REST and Connect and, over HTTP/2, gRPC for every RPC. */
export function makeTables(rpcs: readonly Rpc[], rest: Routes, counters: CallCounters): Tables {
  const findRest = restFinder(rest, counters);
  const onRest = restPaths(rest, findRest);
  const onConnect = new Map<string, Map<string, Route>>();
  const onBoth = new Map<string, Map<string, Route>>();
  for (const rpc of rpcs) {
    const path = `/${rpc.method.parent.typeName}/${rpc.method.name}`;
    const [json, proto] = [jsonCodec(rpc), protoCodec(rpc)];
    const connect = [
      ...typed(connectRoute(rpc, json, counters), JSON_TYPES),
      ...typed(connectRoute(rpc, proto, counters), ["application/proto"]),
    ];
    const grpc = [
      ...typed(grpcRoute(rpc, proto, counters), ["application/grpc", "application/grpc+proto"]),
      ...typed(grpcRoute(rpc, json, counters), ["application/grpc+json"]),
    ];
    onConnect.set(path, new Map(connect));
    onBoth.set(path, new Map([...connect, ...grpc]));
  }
  return {
    http1: finder(new Map([...onRest, ...onConnect]), findRest),
    http2: finder(new Map([...onRest, ...onBoth]), findRest),
  };
}

/** A look into the table costs less than the search by the templates. */
function finder(table: Table, findRest: FindRoute): FindRoute {
  return (method, url, headers) => {
    const known = method === "POST" ? table.get(url)?.get(headers["content-type"] ?? "") : undefined;
    return known ?? findRest(method, url, headers);
  };
}

function typed(route: Route, types: readonly string[]): [type: string, route: Route][] {
  return types.map((type) => [type, route]);
}

/** The paths of POST that hold no part of the request, which the usual calls go to. */
function restPaths({ templates }: Routes, find: FindRoute): [path: string, routes: Map<string, Route>][] {
  return templates.flatMap(({ httpMethod, template: { text, segments } }) => {
    if (httpMethod !== "POST" || !segments.every(({ kind }) => kind === "literal")) return [];
    const route = find("POST", text, { "content-type": JSON_TYPES[0] });
    return route === undefined ? [] : [[text, new Map(typed(route, JSON_TYPES))]];
  });
}
