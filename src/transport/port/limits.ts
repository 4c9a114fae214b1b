/**
 * What one client may take of the port. Times are in milliseconds, sizes in bytes. Each is a positive integer: none has a
 * value that stands for "no limit", and only `lingerTimeout` may be 0.
 */
export interface PortLimits {
  /** From the connection until the client has said which protocol it speaks; under TLS, until the handshake is done. */
  readonly sniffTimeout: number;
  /** HTTP/1.1: from the first byte of a request until its header is complete. Not more than `requestTimeout`. */
  readonly headersTimeout: number;
  /** Until a request is complete with its body. Over it: 408 in HTTP/1.1, the stream is cancelled in HTTP/2. */
  readonly requestTimeout: number;
  /** HTTP/1.1: how long a connection may rest between requests. Longer than a load balancer in front keeps it. */
  readonly keepAliveTimeout: number;
  /**
   * HTTP/1.1: how long a connection may stand still, in both directions, while Node has a request of it under way; while the front
   * has, it is `keepAliveTimeout`.
   */
  readonly inactivityTimeout: number;
  /** HTTP/2: how long a session may rest until it is told to go away; as long again and it is destroyed. */
  readonly sessionTimeout: number;
  /** From `close()` until what is still under way is cut off. */
  readonly closeTimeout: number;
  /**
   * From `close()` until connections that rest are ended, less than `closeTimeout`. A request that crosses the end of its connection
   * is lost in HTTP/1.1, for its client cannot tell whether it was served; so clients get time to send one more, whose response says
   * `Connection: close`. In HTTP/2 it may be sent again, which not every client does: the same, with GOAWAY. 0: ended at once.
   */
  readonly lingerTimeout: number;
  /** Header of a request: all of it in HTTP/1.1, its fields as RFC 9113 §6.5.2 counts them in HTTP/2. */
  readonly maxHeaderBytes: number;
  /** HTTP/2: requests under way at once in a session; a client holds back those above it. */
  readonly maxConcurrentStreams: number;
}

/** For a service whose requests are small and whose answers are quick, behind a load balancer or bare. */
export const defaultLimits: PortLimits = {
  sniffTimeout: 5_000,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 72_000,
  inactivityTimeout: 120_000,
  sessionTimeout: 300_000,
  closeTimeout: 10_000,
  lingerTimeout: 0,
  maxHeaderBytes: 16_384,
  maxConcurrentStreams: 250,
};
