import { once } from "node:events";
import { createServer, type ServerHttp2Session } from "node:http2";
import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  Authorization,
  CheckRequestSchema,
  type CheckResponseSchema,
} from "../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { Health, HealthCheckResponse_ServingStatus } from "../../gen/health/v1/health_pb.js";
import { decodeCheck } from "../support/envoy-protos.ts";
import { listenLocally } from "../support/listen.ts";
import type { Json } from "../support/rest.ts";

/** What is answered; `never`: nothing; `reset`: the connection is closed; a code: an error of the RPC. */
export type Answer = MessageInitShape<typeof CheckResponseSchema> | "never" | "reset" | Code;

/** A gRPC server in Keyhold's place. */
export interface GrpcAuthority {
  readonly address: string;
  /** What Envoy asked since the last `answer`, with the metadata of each call. */
  readonly asked: readonly { readonly request: Json; readonly metadata: Headers }[];
  answer(next: Answer): void;
  close(): Promise<void>;
}

export async function startGrpcAuthority(): Promise<GrpcAuthority> {
  const asked: GrpcAuthority["asked"][number][] = [];
  const sessions = new Set<ServerHttp2Session>();
  const closeSessions = () => {
    for (const session of sessions) session.destroy();
  };
  let answer: Answer = Code.Unavailable;
  const handler = connectNodeAdapter({
    routes: (router) => {
      router.service(Health, { check: () => ({ status: HealthCheckResponse_ServingStatus.SERVING }) });
      router.service(Authorization, {
        check: async (request, { requestHeader: metadata }) => {
          asked.push({ request: decodeCheck(toBinary(CheckRequestSchema, request)), metadata });
          if (typeof answer === "object") return answer;
          if (answer === "reset") closeSessions();
          if (typeof answer === "string") return new Promise(() => {});
          throw new ConnectError("refused", answer);
        },
      });
    },
  });
  const server = createServer(handler);
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  return {
    address: `127.0.0.1:${await listenLocally(server)}`,
    asked,
    answer: (next) => {
      asked.splice(0);
      answer = next;
    },
    close: async () => {
      closeSessions();
      server.close();
      await once(server, "close");
    },
  };
}
