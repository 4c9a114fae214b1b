import { create, type DescMethodUnary, fromJsonString, type Registry, toJsonString } from "@bufbuild/protobuf";
import { pino } from "pino";
import type { Rpc, StreamRpc } from "../../src/api/rpc.ts";
import type { StreamingRpc } from "../../src/transport/connect/streams.ts";
import { type Codec, protoCodec } from "../../src/transport/fast-path/codecs.ts";
import type { Certificate } from "../../src/transport/listener/acceptor.ts";
import { createTransport } from "../../src/transport/transport.ts";
import { JSON_OPTIONS } from "../../src/transport/wire/json/reader.ts";
import { bareServer } from "../support/bare-server.ts";
import { operator } from "../support/principal.ts";

export interface StartOptions {
  readonly rpcs: readonly (Rpc | StreamRpc)[];
  readonly streams: readonly StreamingRpc[];
  /** The RPCs that the fast path serves. */
  readonly fastRpcs: readonly Rpc[];
  /** The types that `google.protobuf.Any` may contain. */
  readonly registry: Registry;
  readonly certificate: Certificate | undefined;
}

/** Serves RPCs of any service by Keyhold's transport, configured like Keyhold's server. Returns the port. */
export async function start({ rpcs, streams, fastRpcs, registry, certificate }: StartOptions): Promise<number> {
  // No message of Keyhold contains a `google.protobuf.Any`.
  Object.assign(JSON_OPTIONS, { registry });
  const fastify = await createTransport({
    ...bareServer(),
    rpcs,
    streams,
    fastPath: true,
    fastRpcs: fastRpcs.map((rpc) => ({ rpc, json: jsonCodec(rpc.method), proto: protoCodec(rpc) })),
    guard: () => operator,
    logger: pino({ level: "silent" }),
    certificate,
  });
  return Number(new URL(await fastify.listen({ host: "127.0.0.1", port: 0 })).port);
}

/** The fast path has compiled codecs only for its own RPCs; these use the library. */
function jsonCodec({ input, output }: DescMethodUnary): Codec {
  const text = new TextDecoder();
  return {
    read: (bytes) => fromJsonString(input, text.decode(bytes), JSON_OPTIONS),
    write: (response) => toJsonString(output, create(output, response), JSON_OPTIONS),
  };
}
