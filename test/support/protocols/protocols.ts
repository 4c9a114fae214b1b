import { afterAll, beforeAll } from "vitest";
import { type Suite, useService } from "../conformance.ts";
import type { TestServer } from "../server.ts";
import type { Protocol } from "./call.ts";
import { connectProtocols } from "./connect.ts";
import { grpcProtocol } from "./grpc.ts";
import { restProtocol } from "./rest.ts";

/** Opens a real client for every protocol of the server. */
export function openProtocols({ url, address }: Pick<TestServer, "url" | "address">): Protocol[] {
  return [grpcProtocol("gRPC", address), ...connectProtocols(url), restProtocol(url)];
}

/** The service for a test file, and a client of each protocol. Its properties are available within tests and hooks only. */
export interface ProtocolSuite extends Suite {
  readonly protocols: readonly Protocol[];
}

export function useProtocols(environment: Record<string, string> = {}): ProtocolSuite {
  const suite = useService(environment);
  let protocols: Protocol[] = [];
  beforeAll(() => {
    protocols = openProtocols(suite.server);
  });
  afterAll(() => {
    for (const protocol of protocols) protocol.close();
  });
  return {
    get server() {
      return suite.server;
    },
    get sql() {
      return suite.sql;
    },
    rest: suite.rest,
    get protocols() {
      return protocols;
    },
  };
}
