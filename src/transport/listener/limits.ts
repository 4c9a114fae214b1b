export type ListenerLimits = Readonly<typeof defaultLimits>;

/**
 * What one client may take of the port: for a service whose requests are small and whose answers are quick, behind a load balancer or
 * bare. Times are in milliseconds, sizes in bytes. Each is a positive integer: none has a value that stands for "no limit", and only
 * `drainDelay` may be 0.
 */
export const defaultLimits = {
  /** From the connection until the client has said which protocol it speaks; under TLS, until the handshake is done. */
  sniffTimeout: 5_000,
  /** HTTP/1.1: from the first byte of a request until its header is complete. Not more than `requestTimeout`. */
  headersTimeout: 10_000,
  /** Until a request is complete with its body. Over it: 408 in HTTP/1.1, the stream is cancelled in HTTP/2. */
  requestTimeout: 60_000,
  /** HTTP/1.1: how long a connection may rest between requests. Longer than a load balancer in front keeps it. */
  keepAliveTimeout: 72_000,
  /**
   * HTTP/1.1: how long a connection may be idle in both directions while Node has a request of it in flight; while the front
   * has, it is `keepAliveTimeout`.
   */
  inactivityTimeout: 120_000,
  /** HTTP/2: idle time of a session until GOAWAY; after the same time again it is destroyed. */
  sessionTimeout: 300_000,
  /** Time from `close()` until calls still in flight are aborted. */
  closeTimeout: 10_000,
  /**
   * From `close()` until connections that rest are ended, less than `closeTimeout`. A request that crosses the end of its connection
   * is lost in HTTP/1.1, for its client cannot tell whether it was served; so clients get time to send one more, whose response says
   * `Connection: close`. In HTTP/2 it may be sent again, which not every client does: the same, with GOAWAY. 0: ended at once.
   */
  drainDelay: 0,
  /** Header of a request: all of it in HTTP/1.1, its fields as RFC 9113 §6.5.2 counts them in HTTP/2. */
  maxHeaderBytes: 16_384,
  /** HTTP/2: maximum number of concurrent streams per session. */
  maxConcurrentStreams: 250,
};
