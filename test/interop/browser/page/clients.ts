import { type Client, Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { Health } from "../../../../gen/health/v1/health_pb.js";
import { ApiKeysService } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";

export interface Settings {
  readonly baseUrl: string;
  readonly token: string;
}

/** What a tracing library adds to the calls of a page (W3C Trace Context and Baggage). */
export const TRACE_CONTEXT = {
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  tracestate: "vendor=value",
  baggage: "team=orders",
};

const PROTOCOLS = {
  "Connect in JSON": (options: Options) => createConnectTransport({ ...options, useBinaryFormat: false }),
  "Connect in binary": (options: Options) => createConnectTransport({ ...options, useBinaryFormat: true }),
  "gRPC-Web": (options: Options) => createGrpcWebTransport({ ...options, useBinaryFormat: true }),
  "gRPC-Web in JSON": (options: Options) => createGrpcWebTransport({ ...options, useBinaryFormat: false }),
} as const;

interface Options {
  readonly baseUrl: string;
  readonly interceptors: Interceptor[];
}

export type ProtocolName = keyof typeof PROTOCOLS;

export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as ProtocolName[];

/** The clients of connect-web for one protocol, with the token of an administrator. */
export interface Clients {
  readonly transport: Transport;
  readonly issued: Client<typeof IssuedApiKeysService>;
  readonly keys: Client<typeof ApiKeysService>;
  readonly health: Client<typeof Health>;
}

export function clientsOf(name: ProtocolName, { baseUrl, token }: Settings): Clients {
  const headers = { ...TRACE_CONTEXT, ...(token === "" ? {} : { authorization: `Bearer ${token}` }) };
  const withHeaders: Interceptor = (next) => (request) => {
    for (const [field, value] of Object.entries(headers)) request.header.set(field, value);
    return next(request);
  };
  const transport = PROTOCOLS[name]({ baseUrl, interceptors: [withHeaders] });
  return {
    transport,
    issued: createClient(IssuedApiKeysService, transport),
    keys: createClient(ApiKeysService, transport),
    health: createClient(Health, transport),
  };
}

/** Resolves to the error of a call that must fail. */
export async function refusal(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => ConnectError.from(reason),
  );
  if (error === undefined) throw new Error("the call succeeded");
  return error;
}

export function codeOf({ code }: ConnectError): string {
  return Code[code];
}
