import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import Fastify, { type FastifyInstance } from "fastify";
import type { Call, Rpc } from "../../../src/api/rpc.ts";
import { defaultLimits } from "../../../src/transport/listener/limits.ts";
import { ListenerServer } from "../../../src/transport/listener/server.ts";
import { makeRoutes, registerRest } from "../../../src/transport/rest/register.ts";
import { answerErrors, handleError } from "../../../src/transport/wire/error-handler.ts";
import { BodyBudget, bodyReader } from "../../../src/transport/wire/request-body.ts";
import { operator } from "../../support/principal.ts";

export function unaryMethodsOf(service: DescService): readonly DescMethodUnary[] {
  return service.methods.filter((method): method is DescMethodUnary => method.methodKind === "unary");
}

/** Implements an RPC. The default echoes the request, or answers an empty message if the types differ. */
export type Behaviour = (request: Message, call: Call) => Promise<Message> | Message;

export interface TestServer {
  readonly fastify: FastifyInstance;
  readonly port: number;
  readonly base: string;
  /** Implementations by RPC name; may be changed at any time. */
  readonly behaviours: Map<string, Behaviour>;
  /** The RPCs that were invoked, oldest first. */
  readonly invoked: { readonly rpc: string; readonly request: Message }[];
  /** Log lines. */
  readonly log: string[];
}

/** Larger than Fastify's own limit of 1 MiB. */
export const MAX_REQUEST_BYTES = 2_097_152;

/** A real server on a real port, for HTTP/1.1 and HTTP/2. */
export async function serve(methods: readonly DescMethodUnary[]): Promise<TestServer> {
  const log: string[] = [];
  const behaviours: TestServer["behaviours"] = new Map();
  const invoked: TestServer["invoked"] = [];
  const rpcs = methods.map((method): Rpc => {
    return {
      method,
      maxRequestBytes: MAX_REQUEST_BYTES,
      admit: async () => operator,
      async invoke(request, _, call) {
        invoked.push({ rpc: method.name, request });
        return (
          (await behaviours.get(method.name)?.(request, call)) ??
          (method.input === method.output ? request : create(method.output))
        );
      },
    };
  });
  const fastify = Fastify({
    logger: { level: "error", stream: { write: (line: string) => void log.push(line) } },
    frameworkErrors: handleError,
    serverFactory: (listener) => new ListenerServer({ limits: defaultLimits }, listener),
  });
  answerErrors(fastify);
  registerRest(fastify, makeRoutes(rpcs), bodyReader(new BodyBudget(2 ** 26)));
  const base = await fastify.listen({ host: "127.0.0.1", port: 0 });
  return { fastify, base, port: Number(new URL(base).port), behaviours, invoked, log };
}

/** Returns the set fields of a message, in snake_case. */
export function setFields(desc: DescMessage, message: Message, registry?: Registry): unknown {
  return toJson(desc, message, { ...(registry && { registry }), useProtoFieldName: true });
}
