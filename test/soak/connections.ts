import { once } from "node:events";
import { Agent, request } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { ChannelCredentials } from "@grpc/grpc-js";
import { Authorization } from "../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { openConnection } from "../hostile/connection.ts";
import type { Target } from "../hostile/target.ts";
import { decisionOf, describeRequest, messageOf } from "../support/ext-authz.ts";
import { forwardAuth } from "../support/forward-auth.ts";
import { connectProtocols } from "../support/protocols/connect.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { issue, paths, restClient, verify } from "../support/rest.ts";
import type { Seeded } from "../support/seeded.ts";

export interface Peer {
  readonly target: Target;
  readonly channel: ChannelCredentials;
  /** A valid credential. */
  readonly secret: string;
  readonly random: Seeded;
}

/** Opens connections of a kind, uses them and closes them. Resolves to true if the answers were right. */
export type Kind = (peer: Peer) => Promise<boolean>;

/** Milliseconds for which a rude client stays. */
const RUDE_STAY = 50;

const VERIFY = JSON.stringify;

export const KINDS: Readonly<Record<string, Kind>> = {
  "a call over each protocol": async ({ target, channel, secret, random }) => {
    const protocols = [grpcProtocol("gRPC", new URL(target.url).host, channel), ...connectProtocols(target.url)];
    try {
      const { call } = random.pick(protocols);
      const reply = await call(ApiKeysService.method.verifyApiKey, { credential: secret });
      return reply.ok && reply.message.isValid;
    } finally {
      for (const protocol of protocols) protocol.close();
    }
  },
  "kept HTTP/1.1 connections": async ({ target, secret }) => {
    const agent = target.tls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
    const headers = { "content-type": "application/json" };
    try {
      for (let count = 0; count < 5; count++) {
        const sent = (target.tls ? requestTls : request)(`${target.url}${paths.keys}:verify`, {
          ...{ agent, headers, method: "POST" },
        });
        sent.end(VERIFY({ credential: secret }));
        const [response] = await once(sent, "response");
        if (!JSON.parse(await text(response)).is_valid) return false;
      }
      return true;
    } finally {
      agent.destroy();
    }
  },
  "the life of a key": async ({ target }) => {
    const rest = restClient(target);
    const { secret, keyId } = await issue(rest);
    const before = await verify(rest, secret);
    const revoked = await rest("POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_KEY_COMPROMISE" });
    return before.is_valid && revoked.status === 200 && !(await verify(rest, secret)).is_valid;
  },
  "forward auth": async ({ target, secret }) =>
    (await forwardAuth(target, { headers: [["Authorization", `Bearer ${secret}`]] })).status === 200,
  ext_authz: (peer) =>
    overGrpc(peer, Authorization, async (client) => {
      const headers = [["authorization", `Bearer ${peer.secret}`]] as const;
      return decisionOf(await client.check(messageOf(describeRequest({ headers })))).status === 200;
    }),
  "health watches": (peer) =>
    overGrpc(peer, Health, async (client) => {
      const left = new AbortController();
      const [watch, other] = [client.watch({}, { signal: left.signal }), client.watch({})];
      const first = await Array.fromAsync(
        [watch, other],
        async (one) => (await one[Symbol.asyncIterator]().next()).value,
      );
      left.abort();
      // Not necessarily SERVING: without connections to its database, a node has no lease.
      return first.every((response) => response !== undefined);
    }),
  "reflection streams": (peer) =>
    overGrpc(peer, ServerReflection, async (client) => {
      const questions = async function* () {
        for (let count = 0; count < 20; count++) yield { messageRequest: { case: "listServices", value: "" } } as const;
        // The others end by a reset.
        if (peer.random.below(2) === 0) await sleep(RUDE_STAY);
      };
      for await (const { messageResponse } of client.serverReflectionInfo(questions()))
        if (messageResponse.case !== "listServicesResponse") return false;
      return true;
    }),
  "unfinished requests": async ({ target, random }) => {
    const isHttp2 = random.below(2) === 0;
    const { socket, reset } = openConnection(target.port, target.tls ? (isHttp2 ? "h2" : "http/1.1") : undefined);
    socket.on("error", () => {});
    const bytes = isHttp2 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : random.pick(HTTP1);
    socket.write(bytes.slice(0, 1 + random.below(bytes.length)));
    await sleep(random.below(RUDE_STAY));
    if (random.below(2) === 0) reset();
    else socket.destroy();
    return true;
  },
  "unfinished streams": async ({ target }) => {
    const manager = new Http2SessionManager(target.url);
    try {
      const stream = await manager.request("POST", `${paths.keys}:verify`, { "content-type": "application/json" }, {});
      stream.on("error", () => {}).write("{");
      await sleep(RUDE_STAY);
    } finally {
      manager.abort();
    }
    return true;
  },
};

const HTTP1 = [
  "POST /v2alpha1/admin/apiKeys:verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
  "GET /health/alive HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
];

/** Runs `use` with a client over a connection of its own, which is then reset. */
async function overGrpc<S extends Parameters<typeof createClient>[0]>(
  { target }: Peer,
  service: S,
  use: (client: Client<S>) => Promise<boolean>,
): Promise<boolean> {
  const sessionManager = new Http2SessionManager(target.url);
  try {
    return await use(createClient(service, createGrpcTransport({ baseUrl: target.url, sessionManager })));
  } finally {
    sessionManager.abort();
  }
}
