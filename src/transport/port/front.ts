import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Http1Message } from "../http1/message.ts";

/** What may take a request before the listener does. What it takes it answers; what it leaves it has not touched. */
export interface Front {
  /** HTTP/1.1 in its usual form, before Node makes objects of it. Answers whether the request is taken. */
  takeMessage(message: Http1Message): boolean;
  /** HTTP/1.1 in any form. */
  takeRequest(request: IncomingMessage, response: ServerResponse): boolean;
  /** HTTP/2, before Node makes a request of the stream. */
  takeStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean;
}
