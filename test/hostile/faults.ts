import { Code } from "@connectrpc/connect";
import { HTTP_ERRORS, STATUSES } from "../../src/transport/wire/http-error.ts";
import { http1Answers } from "./answers.ts";
import type { Http2Outcome } from "./http2-exchange.ts";

/** Codes that no input may cause, since they report a server error. */
const FAULTS = [Code.Unknown, Code.Internal, Code.DataLoss];

/** HTTP statuses from 500 that a response may have. */
const ALLOWED: ReadonlySet<number> = new Set([
  ...Object.entries(STATUSES).flatMap(([code, { http }]) => (FAULTS.includes(Number(code)) ? [] : [http])),
  ...Object.values(HTTP_ERRORS).map(({ http }) => http),
]);

const FAULT_NAMES = FAULTS.map((code) => STATUSES[code].name).join("|");

/** A forbidden code in an error of Connect or REST, or in the trailers of gRPC-Web. */
const IN_BODY = new RegExp(
  `"code":"(?:${FAULT_NAMES.toLowerCase()})"|"status":"(?:${FAULT_NAMES})"|grpc-status: (?:${FAULTS.join("|")})\\r\\n`,
);

/**
 * The case in which the specification of gRPC requires INTERNAL (compression.md): a compressed message in a call without a declared
 * compression.
 */
const BY_SPECIFICATION = /a(?: |%20)message(?: |%20)is(?: |%20)compressed/;

/** Returns whether a response may have this HTTP status. */
export function isAllowed(status: number): boolean {
  return status < 500 || ALLOWED.has(status);
}

/** Returns the forbidden responses in HTTP/1.1. */
export function serverFaults(received: Buffer): string[] {
  return http1Answers(received).flatMap(({ status, text }) =>
    isAllowed(status) ? bodyFaults(text) : [`answered a fault: ${text.slice(0, 1_000)}`],
  );
}

/** Returns the forbidden codes in a body. */
export function bodyFaults(body: string): string[] {
  return IN_BODY.test(body) && !BY_SPECIFICATION.test(body) ? [`answered a fault: ${body.slice(0, 1_000)}`] : [];
}

/** Returns the forbidden responses in HTTP/2. */
export function http2Faults({ streams, isClosed }: Http2Outcome): string[] {
  return [...streams].flatMap(([id, { fields, body, reset }]) => {
    const { ":status": status = "0", "grpc-status": code = "0", "grpc-message": message = "" } = fields;
    const isFault = !isAllowed(Number(status)) || (FAULTS.includes(Number(code)) && !BY_SPECIFICATION.test(message));
    // INTERNAL_ERROR (RFC 9113 §7); Node also uses it for the streams of a connection that it closes after an error.
    const found =
      isFault || (reset === 2 && !isClosed)
        ? [`answered a fault on stream ${id}: ${JSON.stringify({ ...fields, reset })}`]
        : [];
    return [...found, ...bodyFaults(body)];
  });
}
