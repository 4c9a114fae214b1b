import { readFileSync } from "node:fs";
import { create, createRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ConnectCall } from "../../../src/transport/connect/call.ts";
import { start } from "../start.ts";
import {
  ServerCompatRequestSchema,
  ServerCompatResponseSchema,
} from "./gen/connectrpc/conformance/v1/server_compat_pb.js";
import { file_connectrpc_conformance_v1_service } from "./gen/connectrpc/conformance/v1/service_pb.js";
import { conformanceService } from "./service.ts";

/**
 * A server under test, started by the suite's runner: reads the required configuration from stdin, listens, and writes its address to
 * stdout. With `--fast-path`, the fast path serves the unary method; the last line on stderr is the number of calls that used it.
 */

/** Each message is preceded by its length, big-endian. */
const PREFIX_BYTES = 4;

const MAX_REQUEST_BYTES = 4 * 1024 * 1024;

let fastCalls = 0;
const wanted = fromBinary(ServerCompatRequestSchema, readFileSync(0).subarray(PREFIX_BYTES));
const { unary, idempotentUnary, serverStream, streams } = conformanceService(
  wanted.messageReceiveLimit || MAX_REQUEST_BYTES,
  (call) => {
    if (!(call instanceof ConnectCall)) fastCalls++;
  },
);
const { cert: pemCert = new Uint8Array(), key = new Uint8Array() } = wanted.serverCreds ?? {};
const port = await start({
  rpcs: [unary, idempotentUnary, serverStream],
  streams,
  fastRpcs: process.argv.includes("--fast-path") ? [unary] : [],
  registry: createRegistry(file_connectrpc_conformance_v1_service),
  certificate: wanted.useTls ? { cert: Buffer.from(pemCert), key: Buffer.from(key) } : undefined,
});
const response = create(ServerCompatResponseSchema, { host: "127.0.0.1", port, pemCert });
const bytes = toBinary(ServerCompatResponseSchema, response);
const prefix = Buffer.alloc(PREFIX_BYTES);
prefix.writeUInt32BE(bytes.length);
process.stdout.write(Buffer.concat([prefix, bytes]));
process.once("SIGTERM", () => {
  process.stderr.write(`fast calls: ${fastCalls}\n`, () => process.exit(0));
});
