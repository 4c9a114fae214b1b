/**
 * Settles like `work`, or rejects with the reason of the signal if that aborts first. Unlike `Promise.race` with a long-lived promise, it leaves
 * no reaction behind.
 */
export async function raceSignal<T>(signal: AbortSignal, work: PromiseLike<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([aborted.promise, work]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
