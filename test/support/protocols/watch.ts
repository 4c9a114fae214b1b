import { once } from "node:events";
import { type IncomingMessage, request as requestHttp1 } from "node:http";
import { connect } from "node:http2";
import { create, fromBinary, type MessageInitShape, type MessageShape, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { codeName } from "./call.ts";
import { grpcPath, serializer } from "./grpc.ts";

const { watchAuditEvents: method } = AuditService.method;

export type WatchRequest = MessageInitShape<typeof method.input>;

/** A response as received over any protocol. `seq` is absent in a heartbeat. */
export interface Watched {
  readonly seq?: number;
  readonly resumeToken: string;
}

/** The error that ends a stream, or is the response. */
export class WatchError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export interface WatchOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Disconnects. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface WatchProtocol {
  readonly name: string;
  readonly hasDeadlines: boolean;
  /** Yields the responses as the caller takes them. Throws a `WatchError`. */
  watch(url: string, request?: WatchRequest, options?: WatchOptions): AsyncGenerator<Watched, void>;
}

/** Clients of `WatchAuditEvents`, over every protocol and version of HTTP. */
export const WATCH_PROTOCOLS: readonly WatchProtocol[] = [
  { name: "gRPC by grpc-js", hasDeadlines: true, watch: overGrpc },
  overConnect("gRPC in JSON", (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat: false })),
  overConnect("gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  overConnect("gRPC-Web over HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })),
  overConnect("Connect in JSON over HTTP/1.1", (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  ),
  overConnect("Connect in binary over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })),
  { name: "REST over HTTP/1.1", hasDeadlines: false, watch: overRest(openHttp1) },
  { name: "REST over HTTP/2", hasDeadlines: false, watch: overRest(openHttp2) },
];

function watched({ auditEvent, resumeToken }: MessageShape<typeof method.output>): Watched {
  return auditEvent === undefined ? { resumeToken } : { seq: Number(auditEvent.seq), resumeToken };
}

function overConnect(name: string, transportTo: (url: string) => Transport): WatchProtocol {
  return {
    name,
    hasDeadlines: true,
    async *watch(url, request = {}, options = {}) {
      try {
        const responses = createClient(AuditService, transportTo(url)).watchAuditEvents(request, options);
        for await (const response of responses) yield watched(response);
      } catch (cause) {
        const { code, rawMessage } = ConnectError.from(cause);
        throw new WatchError(codeName(code), rawMessage);
      }
    },
  };
}

async function* overGrpc(url: string, request: WatchRequest = {}, options: WatchOptions = {}) {
  const client = new Client(new URL(url).host, credentials.createInsecure());
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(options.headers ?? {})) metadata.set(key, value);
  const call = client.makeServerStreamRequest(
    grpcPath(method),
    serializer(method.input),
    (bytes) => fromBinary(method.output, bytes),
    create(method.input, request),
    metadata,
    options.timeoutMs === undefined ? {} : { deadline: Date.now() + options.timeoutMs },
  );
  options.signal?.addEventListener("abort", () => call.cancel());
  try {
    for await (const response of call) yield watched(response);
  } catch (cause) {
    const { code = status.UNKNOWN, details = "" } = Object(cause);
    throw new WatchError(code === status.CANCELLED ? codeName(Code.Canceled) : (status[code] ?? ""), details);
  } finally {
    call.cancel();
    client.close();
  }
}

interface Opened {
  readonly status: number;
  readonly body: AsyncIterable<Buffer>;
  close(): void;
}

type Open = (url: URL, headers: Readonly<Record<string, string>>, signal?: AbortSignal) => Promise<Opened>;

async function openHttp1(url: URL, headers: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Opened> {
  const outgoing = requestHttp1(url, { headers, agent: false, ...(signal && { signal }) }).end();
  const [response]: IncomingMessage[] = await once(outgoing, "response");
  if (response === undefined) throw new Error("no response");
  return { status: response.statusCode ?? 0, body: response, close: () => response.destroy() };
}

async function openHttp2(url: URL, headers: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Opened> {
  const session = connect(url.origin);
  session.on("error", () => {});
  const stream = session.request({ ":path": url.pathname + url.search, ...headers }, signal && { signal });
  const [fields] = await once(stream, "response");
  return { status: Number(fields[":status"]), body: stream, close: () => session.destroy() };
}

/** The path of the stream over REST, with its parameters. */
export function watchPath(request: WatchRequest = {}): string {
  const parameters = Object(toJson(method.input, create(method.input, request), { useProtoFieldName: true }));
  return `/v2alpha1/admin/auditEvents:watch?${new URLSearchParams(parameters)}`;
}

function overRest(open: Open): WatchProtocol["watch"] {
  return async function* (url, request = {}, { headers = {}, signal } = {}) {
    const { status: code, body, close } = await open(new URL(watchPath(request), url), headers, signal);
    try {
      const text = new TextDecoder();
      let rest = "";
      for await (const chunk of body) {
        rest += text.decode(chunk, { stream: true });
        const events = rest.split("\n\n");
        rest = events.pop() ?? "";
        for (const event of events) yield readEvent(event);
      }
      if (code !== 200) throw toWatchError(rest);
    } catch (cause) {
      throw cause instanceof WatchError ? cause : new WatchError("CANCELLED", String(cause));
    } finally {
      close();
    }
  };
}

function readEvent(text: string): Watched {
  const lines = text.split("\n").map((line) => /^(\w*): (.*)$/.exec(line) ?? []);
  const { event, id = "", data } = Object.fromEntries(lines.map(([, name, value]) => [name, value]));
  if (event === "error") throw toWatchError(data);
  if (data === undefined) return { resumeToken: id };
  const { audit_event, resume_token } = JSON.parse(data);
  if (resume_token !== id) throw new Error(`the id is ${id}, the token ${resume_token}`);
  return { seq: Number(audit_event.seq), resumeToken: id };
}

function toWatchError(body: string): WatchError {
  const { error } = JSON.parse(body);
  return new WatchError(error.status, error.message);
}
