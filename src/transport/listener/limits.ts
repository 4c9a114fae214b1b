export type ListenerLimits = Readonly<typeof defaultLimits>;

/**
 * Limits per client, for a service with small requests and fast responses, behind a load balancer or not. Times are in milliseconds,
 * sizes in bytes. All are positive integers: no value means "no limit", and only `drainDelay` may be 0.
 */
export const defaultLimits = {
  /** From the connection until the protocol is known; with TLS, until the handshake is complete. */
  sniffTimeout: 5_000,
  /** HTTP/1.1: from the first byte of a request until its header is complete. At most `requestTimeout`. */
  headersTimeout: 10_000,
  /** Until a request is complete with its body. After that: 408 in HTTP/1.1; in HTTP/2 the stream is cancelled. */
  requestTimeout: 60_000,
  /** HTTP/1.1: keep-alive timeout between requests. Longer than that of a load balancer in front. */
  keepAliveTimeout: 72_000,
  /** HTTP/1.1: idle time in both directions while a request is in flight; on the fast path it is `keepAliveTimeout`. */
  inactivityTimeout: 120_000,
  /** HTTP/2: idle time of a session until GOAWAY, at least; after the same time again it is destroyed. */
  sessionTimeout: 300_000,
  /** Time from `close()` until calls still in flight are aborted. */
  closeTimeout: 10_000,
  /**
   * From `close()` until idle connections are closed; less than `closeTimeout`. In HTTP/1.1 a request that crosses the close of its
   * connection is lost, because its client cannot know whether it was served; so clients get time to send one more, whose response says
   * `Connection: close`. In HTTP/2 such a request may be retried, which not every client does: sessions drain likewise, with GOAWAY. 0:
   * closed at once.
   */
  drainDelay: 0,
  /** HTTP/2: from `close()` until GOAWAY on sessions whose calls overlap without a pause, unless `drainDelay` is 0. */
  goawayTimeout: 5_000,
  /** Size of a request header: all of it in HTTP/1.1, its fields as counted by RFC 9113 §6.5.2 in HTTP/2. */
  maxHeaderBytes: 16_384,
  /** HTTP/2: maximum number of concurrent streams per session. */
  maxConcurrentStreams: 250,
};
