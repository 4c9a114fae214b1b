import { once } from "node:events";
import { Agent, request } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { paths } from "../../support/rest.ts";

/** What became of a call: `cut` began its response and did not end it; `lost` was sent, and is neither answered nor known to be unserved. */
export type Fate = "complete" | "refused" | "cut" | "lost";

/** A connection of its own. */
export interface Connection {
  /** `goesOn`: whether it takes more calls. */
  readonly call: (
    isLarge: boolean,
  ) => Promise<{ readonly fate: Fate; readonly goesOn: boolean; readonly why?: string }>;
  readonly close: () => void;
}

interface Question {
  readonly path: string;
  readonly method: string;
  readonly type: string;
  readonly body: Uint8Array;
}

/** A protocol: the requests of a small and of a large response, and whether a response is whole. */
interface Protocol {
  readonly ask: (secret: string, isLarge: boolean) => Question;
  readonly isWhole: (body: Buffer, trailers: NodeJS.Dict<string | string[]>) => boolean;
}

const { verifyApiKey } = ApiKeysService.method;
const { listIssuedApiKeys } = IssuedApiKeysService.method;
const PAGE = { pageSize: 200 };

function rpc(type: string, encode: (message: Uint8Array) => Uint8Array): Protocol["ask"] {
  return (credential, isLarge) => {
    const method = isLarge ? listIssuedApiKeys : verifyApiKey;
    const message = isLarge
      ? toBinary(listIssuedApiKeys.input, create(listIssuedApiKeys.input, PAGE))
      : toBinary(verifyApiKey.input, create(verifyApiKey.input, { credential }));
    return { path: `/${method.parent.typeName}/${method.name}`, method: "POST", type, body: encode(message) };
  };
}

const enveloped = (message: Uint8Array) => encodeEnvelope(0, message);

/** The flag of the frame of trailers (gRPC-Web). */
const TRAILERS = 0x80;

function endsWithTrailers(body: Buffer): boolean {
  let isEnded = false;
  while (body.length >= 5) {
    isEnded = ((body[0] ?? 0) & TRAILERS) !== 0;
    const end = 5 + body.readUInt32BE(1);
    if (body.length < end) return false;
    body = body.subarray(end);
  }
  return isEnded && body.length === 0;
}

function isJson(body: Buffer): boolean {
  try {
    return typeof JSON.parse(body.toString()) === "object";
  } catch {
    return false;
  }
}

export const PROTOCOLS = {
  REST: {
    ask: (credential, isLarge) =>
      isLarge
        ? { path: `${paths.issued}?page_size=200`, method: "GET", type: "application/json", body: new Uint8Array() }
        : {
            ...{ path: `${paths.keys}:verify`, method: "POST", type: "application/json" },
            body: Buffer.from(toJsonString(verifyApiKey.input, create(verifyApiKey.input, { credential }))),
          },
    isWhole: isJson,
  },
  // Its length is declared, so that clients of HTTP notice a part.
  Connect: { ask: rpc("application/proto", (message) => message), isWhole: (body) => body.length > 0 },
  gRPC: { ask: rpc("application/grpc", enveloped), isWhole: (_, trailers) => trailers["grpc-status"] !== undefined },
  "gRPC-Web": { ask: rpc("application/grpc-web+proto", enveloped), isWhole: endsWithTrailers },
} satisfies Record<string, Protocol>;

export type ProtocolName = keyof typeof PROTOCOLS;

export function openHttp1(url: string, name: ProtocolName, secret: string): Connection {
  const isTls = url.startsWith("https:");
  const agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true, maxSockets: 1 });
  const { ask, isWhole }: Protocol = PROTOCOLS[name];
  return {
    close: () => agent.destroy(),
    async call(isLarge) {
      const { path, method, type, body } = ask(secret, isLarge);
      const headers = { "content-type": type, "content-length": body.length };
      const sent = (isTls ? requestTls : request)(`${url}${path}`, { agent, method, headers });
      sent.end(body);
      try {
        const [response] = await once(sent, "response");
        return await read(response, (bytes) => ({
          isWhole: isWhole(bytes, response.trailers),
          goesOn: response.headers.connection !== "close",
        }));
      } catch (error) {
        const isRefused = error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
        return { fate: isRefused ? "refused" : "lost", goesOn: false, why: String(error) };
      }
    },
  };
}

export function openHttp2(url: string, name: ProtocolName, secret: string): Connection {
  const session = connect(url);
  const { ask, isWhole }: Protocol = PROTOCOLS[name];
  let last = Number.POSITIVE_INFINITY;
  session.on("error", () => {});
  session.on("goaway", (_, lastId) => {
    last = lastId;
  });
  return {
    close: () => session.destroy(),
    async call(isLarge) {
      if (!isOpen(session)) return { fate: "refused", goesOn: false };
      const { path, method, type, body } = ask(secret, isLarge);
      const endStream = method === "GET";
      const headers = { ":path": path, ":method": method, "content-type": type, te: "trailers" };
      const stream = session.request(headers, { endStream });
      if (!endStream) stream.end(body);
      let trailers = {};
      stream.on("trailers", (fields) => {
        trailers = fields;
      });
      try {
        const [fields] = await once(stream, "response");
        return await read(stream, (bytes) => ({
          isWhole: isWhole(bytes, { ...fields, ...trailers }) && stream.rstCode === 0,
          goesOn: isOpen(session),
        }));
      } catch (error) {
        // Without an id it was not sent; above the last id it was not served (RFC 9113 §6.8), and GOAWAY may follow a reset.
        if (!session.destroyed) await once(session, "close").catch(() => undefined);
        const isRefused = stream.id === undefined || stream.id > last;
        return { fate: isRefused ? "refused" : "lost", goesOn: false, why: `${error}, stream ${stream.id} of ${last}` };
      }
    },
  };
}

const isOpen = (session: ClientHttp2Session) => !session.closed && !session.destroyed;

async function read(
  response: Readable,
  judge: (body: Buffer) => { readonly isWhole: boolean; readonly goesOn: boolean },
): Promise<Awaited<ReturnType<Connection["call"]>>> {
  try {
    const body = await buffer(response);
    const { isWhole, goesOn } = judge(body);
    return { fate: isWhole ? "complete" : "cut", goesOn, why: `${body.length} bytes` };
  } catch (error) {
    return { fate: "cut", goesOn: false, why: String(error) };
  }
}
