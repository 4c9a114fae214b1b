/**
 * Returns the delay before the next attempt in milliseconds: exponential backoff with half jitter, `min(max, first × 2^(failures − 1))`
 * multiplied by a random number in (0.5, 1], so that clients that failed together do not retry together. `failures` is the number of
 * consecutive failures, from 1; `random` returns a number in [0, 1).
 *
 * @example await sleep(backoffDelay(3, { first: 100, max: 5_000 })); // between 200 and 400 ms
 */
export function backoffDelay(
  failures: number,
  { first, max }: Readonly<Record<"first" | "max", number>>,
  random = Math.random,
): number {
  return Math.min(max, first * 2 ** (failures - 1)) * (1 - random() / 2);
}
