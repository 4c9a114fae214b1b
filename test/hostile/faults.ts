import { Code } from "@connectrpc/connect";
import { HTTP_ERRORS, STATUSES } from "../../src/transport/errors/http-error.ts";
import { http1Answers } from "./answers.ts";
import type { Http2Outcome } from "./http2-exchange.ts";

/** What no input may bring about: these say that the server did not know what to do. */
const FAULTS = [Code.Unknown, Code.Internal, Code.DataLoss];

/** Statuses of HTTP from 500 that an answer may have. */
const ALLOWED: ReadonlySet<number> = new Set([
  ...Object.entries(STATUSES).flatMap(([code, { http }]) => (FAULTS.includes(Number(code)) ? [] : [http])),
  ...Object.values(HTTP_ERRORS).map(({ http }) => http),
]);

const FAULT_NAMES = FAULTS.map((code) => STATUSES[code].name).join("|");

/** A fault in an error of Connect, of REST, and in the trailers of gRPC-Web. */
const IN_BODY = new RegExp(
  `"code":"(?:${FAULT_NAMES.toLowerCase()})"|"status":"(?:${FAULT_NAMES})"|grpc-status: (?:${FAULTS.join("|")})\\r\\n`,
);

/** INTERNAL by the specification of gRPC (compression.md): a compressed message in a call that names no compression. */
const BY_SPECIFICATION = /a(?: |%20)message(?: |%20)is(?: |%20)marked(?: |%20)as(?: |%20)compressed/;

/** Whether a server may answer with this status of HTTP. */
export function isAllowed(status: number): boolean {
  return status < 500 || ALLOWED.has(status);
}

/** Answers in HTTP/1.1 that no input may have. */
export function serverFaults(received: Buffer): string[] {
  return http1Answers(received).flatMap(({ status, text }) =>
    isAllowed(status) ? bodyFaults(text) : [`answered a fault: ${text.slice(0, 1_000)}`],
  );
}

/** What a body says of a fault. */
export function bodyFaults(body: string): string[] {
  return IN_BODY.test(body) && !BY_SPECIFICATION.test(body) ? [`answered a fault: ${body.slice(0, 1_000)}`] : [];
}

/** Answers in HTTP/2 that no input may have. */
export function http2Faults({ streams, isClosed }: Http2Outcome): string[] {
  return [...streams].flatMap(([id, { fields, body, reset }]) => {
    const { ":status": status = "0", "grpc-status": code = "0", "grpc-message": message = "" } = fields;
    const isFault = !isAllowed(Number(status)) || (FAULTS.includes(Number(code)) && !BY_SPECIFICATION.test(message));
    // INTERNAL_ERROR (RFC 9113 §7), which Node also gives the streams of a connection that it ends for an error.
    const found =
      isFault || (reset === 2 && !isClosed)
        ? [`answered a fault on stream ${id}: ${JSON.stringify({ ...fields, reset })}`]
        : [];
    return [...found, ...bodyFaults(body)];
  });
}
