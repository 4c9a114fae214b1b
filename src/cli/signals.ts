/** Resolves with the name of the next SIGINT or SIGTERM, which then does not end the process by itself. */
export function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, resolve);
  });
}

/** Milliseconds for which idle connections of HTTP/1.1 may still bring a request after the order to stop. */
export const LINGER_TIMEOUT = 1_000;
