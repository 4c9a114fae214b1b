/**
 * Serves part of the API over stock Fastify and stock `@connectrpc/connect-fastify`: the service's implementations with its
 * authorization, validation and error table, without its transport. It reads the environment variables of `keyhold serve`, has its own
 * database, and logs with Fastify's logger. Stock Fastify without TLS serves HTTP/2 on a separate port, whose URL `GET /http2` returns.
 */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromJson,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import {
  IssuedApiKeysService,
  UpdateIssuedApiKeyRequestSchema,
} from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { openRpcs, rpcCaller } from "../in-process/rpcs.ts";
import { PATHS } from "../subject/client.ts";

const jsonOptions = { useProtoFieldName: true, alwaysEmitImplicit: true };
const host = "127.0.0.1";

const { rpcs, close } = await openRpcs("reject");
const callRpc = rpcCaller(rpcs);
const connect = {
  routes: (router: ConnectRouter) => {
    for (const { method } of rpcs) router.rpc(method, callRpc(method));
  },
  jsonOptions,
};

const logger = { level: process.env.KEYHOLD_LOG_LEVEL ?? "info" };
const http1 = Fastify({ logger });
const http2 = Fastify({ http2: true, logger });
await http1.register(fastifyConnectPlugin, connect);
await http2.register(fastifyConnectPlugin, connect);

/** Returns a route handler that converts the request to a message and writes the response message as JSON. */
function route<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  requestOf: (request: FastifyRequest<Parts>) => MessageInitShape<I> | MessageShape<I>,
) {
  const call = callRpc(method);
  return async (request: FastifyRequest<Parts>, reply: FastifyReply) => {
    const answer = create(method.output, await call(requestOf(request) as MessageInitShape<I>));
    return reply.type("application/json").send(JSON.stringify(toJson(method.output, answer, jsonOptions)));
  };
}

interface Parts {
  Params: { key_id: string };
  Querystring: { page_size: string };
  Body: Record<string, string>;
}

const { getIssuedApiKey, listIssuedApiKeys, updateIssuedApiKey } = IssuedApiKeysService.method;
const key = `${PATHS.issued}/:key_id`;
http1.get<Parts>(
  key,
  route(getIssuedApiKey, ({ params }) => ({ keyId: params.key_id })),
);
http1.get<Parts>(
  PATHS.issued,
  route(listIssuedApiKeys, ({ query }) => ({ pageSize: Number(query.page_size) })),
);
http1.patch<Parts>(
  key,
  route(updateIssuedApiKey, ({ params, body }) =>
    fromJson(UpdateIssuedApiKeyRequestSchema, {
      issued_api_key: { ...body, key_id: params.key_id },
      update_mask: Object.keys(body).join(","),
    }),
  ),
);
http1.get<Parts>(
  PATHS.jwks,
  route(DerivedKeysService.method.getJwks, () => ({})),
);

const http2Url = await http2.listen({ host, port: 0 });
http1.get("/http2", async () => ({ url: http2Url }));
http1.get("/health/ready", async () => ({}));
await http1.listen({ host, port: Number(process.env.KEYHOLD_PORT) });
process.once("SIGTERM", async () => {
  await close();
  process.exit();
});
