import { ConnectError, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import {
  createConnectTransport as createWebConnectTransport,
  createGrpcWebTransport as createWebGrpcWebTransport,
} from "@connectrpc/connect-web";
import { type CallRpc, codeName, decodeDetails, type Protocol } from "./call.ts";

/** A response with an unknown field is an error for the client. */
const jsonOptions = { ignoreUnknownFields: false };

/** The protocols of Connect's clients: connect-web uses fetch like browsers, connect-node HTTP/1.1 or HTTP/2. */
export function connectProtocols(baseUrl: string): Protocol[] {
  const session = new Http2SessionManager(baseUrl);
  const http1 = { baseUrl, jsonOptions, httpVersion: "1.1" } as const;
  const http2 = { baseUrl, jsonOptions, httpVersion: "2", sessionManager: session } as const;
  const web = { baseUrl, jsonOptions };
  const transports: Record<string, Transport> = {
    "gRPC in JSON": createGrpcTransport({ ...http2, useBinaryFormat: false }),
    "gRPC-Web": createWebGrpcWebTransport({ ...web, useBinaryFormat: true }),
    "gRPC-Web in JSON over HTTP/2": createGrpcWebTransport({ ...http2, useBinaryFormat: false }),
    "Connect in JSON": createWebConnectTransport({ ...web, useBinaryFormat: false }),
    "Connect in binary": createConnectTransport({ ...http1, useBinaryFormat: true }),
    "Connect in JSON over HTTP/2": createConnectTransport({ ...http2, useBinaryFormat: false }),
    "Connect in binary over HTTP/2": createConnectTransport({ ...http2, useBinaryFormat: true }),
    "Connect GET in JSON": createWebConnectTransport({ ...web, useBinaryFormat: false, useHttpGet: true }),
    "Connect GET in binary over HTTP/2": createConnectTransport({ ...http2, useBinaryFormat: true, useHttpGet: true }),
  };
  return Object.entries(transports).map(([name, transport]) => ({
    name,
    call: callOver(transport),
    close: () => session.abort(),
  }));
}

export function callOver(transport: Transport): CallRpc {
  return async (method, request, headers) => {
    try {
      const { message, header } = await transport.unary(method, undefined, undefined, headers, request);
      return { ok: true, message, headers: header };
    } catch (reason) {
      const { code, rawMessage, details, metadata } = ConnectError.from(reason);
      const encoded = details.filter((detail) => "value" in detail && "type" in detail);
      return {
        ok: false,
        code: codeName(code),
        message: rawMessage,
        details: decodeDetails(encoded),
        headers: metadata,
      };
    }
  };
}
