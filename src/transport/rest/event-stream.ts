import type { OutgoingHttpHeaders } from "node:http";
import { pipeline } from "node:stream/promises";
import { create, type DescMessage, isFieldSet, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";
import type { StreamRpc } from "../../api/rpc.ts";
import type { Principal } from "../../domain/principal.ts";
import { toErrorBody } from "../wire/error-body.ts";
import type { RestCall } from "../wire/fastify-call.ts";
import { writeJson } from "./response.ts";

/** Server-Sent Events (WHATWG HTML §9.2). */
export type Events = AsyncGenerator<string, void>;

/** In a response the id of its event, in a request what `Last-Event-ID` sets. */
const RESUME_TOKEN = "resume_token";

/** Returns the events of a stream once its first response is known: an error before that is a REST error, and later one of its events. */
export async function openEvents(
  rpc: StreamRpc,
  message: Message,
  principal: Principal,
  call: RestCall,
): Promise<Events> {
  const { input, output } = rpc.method;
  const token = input.fields.find(({ name }) => name === RESUME_TOKEN);
  const lastEventId = call.header("last-event-id");
  if (token !== undefined && lastEventId !== undefined && !isFieldSet(message, token)) {
    Reflect.set(message, token.localName, lastEventId);
  }
  const responses = rpc.stream(message, principal, call);
  const first = await responses.next();
  // A response to HEAD has no events (RFC 9110 §9.3.2).
  if (call.request.method === "HEAD") await responses.return();
  return toEvents(output, first, responses);
}

type Responses = ReturnType<StreamRpc["stream"]>;

async function* toEvents(
  output: DescMessage,
  first: Awaited<ReturnType<Responses["next"]>>,
  others: Responses,
): Events {
  try {
    for (let next = first; next.done !== true; next = await others.next()) yield toEvent(output, next.value);
  } catch (error) {
    yield `event: error\ndata: ${JSON.stringify(toErrorBody(ConnectError.from(error)))}\n\n`;
  } finally {
    await others.return();
  }
}

/** A response with a resume token alone is a heartbeat. Without data no event is dispatched, but its id is the next `Last-Event-ID`. */
function toEvent(output: DescMessage, response: MessageInitShape<DescMessage>): string {
  const message = create(output, response);
  const set = output.fields.filter((field) => isFieldSet(message, field));
  const token = set.find(({ name }) => name === RESUME_TOKEN);
  const id = token === undefined ? "" : `id: ${Reflect.get(message, token.localName)}\n`;
  const isHeartbeat = set.every((field) => field === token);
  return `${id}${isHeartbeat ? ": heartbeat" : `data: ${writeJson(output, message)}`}\n\n`;
}

/** Sends events as fast as the client reads them. */
export function sendEvents(reply: FastifyReply, events: Events): FastifyReply {
  // The last header keeps nginx from buffering the response (nginx.org, ngx_http_proxy_module).
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
  const { raw } = reply.headers(headers).hijack();
  raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders);
  // The client disconnects.
  pipeline(events, raw).catch(() => undefined);
  return reply;
}
