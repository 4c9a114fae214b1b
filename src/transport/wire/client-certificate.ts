import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

const SUBJECT = Symbol("subject of the client certificate");

/** Stores the subject of the client certificate at its connection, if the CA has verified it. */
export function storeSubject(socket: TLSSocket): void {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate !== undefined) Reflect.set(socket, SUBJECT, certificate.subject.replaceAll("\n", ", "));
}

/** Returns the subject of the verified client certificate of a connection; undefined without one. */
export function certificateSubjectOf(socket: Socket | undefined): string | undefined {
  // Over HTTP/2 it is a proxy of the socket, whose properties throw when the session is closed.
  const subject: unknown = socket === undefined || socket.destroyed ? undefined : Reflect.get(socket, SUBJECT);
  return typeof subject === "string" ? subject : undefined;
}
