import type { Http2ServerRequest } from "node:http2";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { CallLog, EndListener, StreamCall } from "../../api/rpc.ts";
import { certificateSubjectOf } from "./client-certificate.ts";
import { fieldsOf, headerOf } from "./headers.ts";
import type { Protocol } from "./protocol.ts";

/** The call and the log entry of a Fastify request. */
export abstract class FastifyCall implements StreamCall, CallLog {
  readonly request: FastifyRequest;
  readonly id: string;
  /** Read at the start: a change may commit, and be recorded, after the client has disconnected. */
  readonly peerAddress: string;
  readonly certificateSubject: string | undefined;
  readonly #logFields: Record<string, string>;

  constructor(request: FastifyRequest, protocol: Protocol) {
    this.request = request;
    this.id = request.id;
    this.peerAddress = request.socket.remoteAddress ?? "";
    this.certificateSubject = certificateSubjectOf(request.socket);
    request.logFields ??= {};
    request.logFields.protocol = protocol;
    this.#logFields = request.logFields;
  }

  abstract setHeader(name: string, value: string): void;
  abstract setTrailer(name: string, value: string): void;

  header(name: string): string | undefined {
    return headerOf(this.request.headers, name);
  }

  fields(name: string): readonly string[] {
    return fieldsOf(this.request.raw.rawHeaders, name);
  }

  get isAbandoned(): boolean {
    const { raw } = this.request;
    // An HTTP/2 stream ends before its connection does. Over HTTP/1.1, a client that has disconnected looks like one that has only ended
    // its side of the connection, until something is written.
    if ("stream" in raw) return (raw as unknown as Http2ServerRequest).stream.destroyed;
    return raw.socket.destroyed || raw.socket.readableEnded;
  }

  /** Over HTTP/1.1 also when the client ends its side of the connection: see `isAbandoned`. */
  onDisconnect(listener: () => void): () => void {
    const { raw } = this.request;
    const [source, events] =
      "stream" in raw ? [(raw as unknown as Http2ServerRequest).stream, ["close"]] : [raw.socket, ["end", "close"]];
    for (const event of events) source.on(event, listener);
    if (this.isAbandoned) listener();
    return () => {
      for (const event of events) source.off(event, listener);
    };
  }

  get log(): CallLog {
    return this;
  }

  add(fields: Readonly<Record<string, string>>): void {
    Object.assign(this.#logFields, fields);
  }

  accepted(): void {
    this.request.isAccepted = true;
  }

  note(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.request.log.info({ reqId: this.request.id, ...this.#logFields, ...fields }, message);
  }

  fault(error: unknown): void {
    this.request.log.error({ reqId: this.request.id, err: error, ...this.#logFields }, "fault");
  }

  outage(cause: unknown): void {
    this.request.server.outages.add(cause, () => ({ reqId: this.request.id, ...this.#logFields }));
  }

  onEnd(listener: EndListener): void {
    this.request.onEnd = listener;
  }

  /**
   * Returns the work and delays the log entry until it ends, so that it contains the fields of a change that commits after the client has
   * disconnected or after its deadline. At most one work per call; it must start before the response.
   */
  logged<T>(work: Promise<T>): Promise<T> {
    this.request.work = work;
    return work;
  }
}

/** A call over REST. Create it before the first await. */
export class RestCall extends FastifyCall {
  readonly #reply: FastifyReply;

  constructor(reply: FastifyReply) {
    super(reply.request, "rest");
    this.#reply = reply;
  }

  setHeader(name: string, value: string): void {
    this.#reply.header(name, value);
  }

  setTrailer(): void {}
}
