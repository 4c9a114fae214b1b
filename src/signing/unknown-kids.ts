import { ClockCache } from "../lib/clock-cache.ts";

/** A `kid` is the thumbprint of its key: SHA-256 in base64url (`token/signing-key.ts`). */
const KID = /^[\w-]{43}$/;

/** Maximum number of cached kids. */
const MAX_KIDS = 10_000;

/** Maximum number of look-ups per interval, and the interval in milliseconds. */
const MAX_LOOK_UPS = 10;
const INTERVAL = 1_000;

/**
 * Bounds the cost of tokens with unknown kids, which anyone can send: a kid that was not found is not looked up again, and only a few
 * new ones are looked up per interval.
 *
 * Valid only for a node that receives every change of the signing keys and has loaded them since the last one. The only key that such
 * a node may lack is one that was just added. A look-up finds it, and its kid cannot have been cached as unknown, because a
 * kid cannot be guessed.
 */
export class UnknownKids {
  readonly #kids = new ClockCache<true>(MAX_KIDS);
  #lookUps = 0;

  /** Returns whether the kid is well-formed. */
  static mayExist(kid: string): boolean {
    return KID.test(kid);
  }

  /** Returns whether the kid may be looked up now, and counts the look-up. */
  mayLookUp(kid: string): boolean {
    if (this.#kids.get(kid) || this.#lookUps >= MAX_LOOK_UPS) return false;
    if (this.#lookUps === 0) setTimeout(() => (this.#lookUps = 0), INTERVAL).unref();
    this.#lookUps++;
    return true;
  }

  add(kid: string): void {
    this.#kids.set(kid, true);
  }

  /** Call when the keys have changed. */
  clear(): void {
    this.#kids.clear();
  }
}
