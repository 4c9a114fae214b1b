/** A key has its own thumbprint as `kid`: SHA-256 in base64url (`token/signing-key.ts`). */
const KID = /^[\w-]{43}$/;

/** Kids that are remembered at the most. */
const MAX_KIDS = 10_000;

/** Look-ups in an interval at the most, and the interval in milliseconds. */
const MAX_LOOK_UPS = 10;
const INTERVAL = 1_000;

/**
 * Bounds what tokens with unknown kids cost, which anyone can send: a kid that was looked up in vain is not looked up again, and
 * of new ones only a few are in an interval.
 *
 * Only for a node that is told of every change of the signing keys, and has read them since the last one: it knows all keys but one that
 * was added a moment ago, of which it is about to be told. A look-up finds that one too, and a remembered kid cannot be its own, since
 * nobody knew it before.
 */
export class UnknownKids {
  readonly #kids = new Set<string>();
  #lookUps = 0;

  /** Whether the store may have a key of this kid, as far as its form says. */
  static mayExist(kid: string): boolean {
    return KID.test(kid);
  }

  /** Returns whether this kid is to be looked up now, and counts the look-up. */
  mayLookUp(kid: string): boolean {
    if (this.#kids.has(kid) || this.#lookUps >= MAX_LOOK_UPS) return false;
    if (this.#lookUps === 0) setTimeout(() => this.#begin(), INTERVAL).unref();
    this.#lookUps++;
    return true;
  }

  add(kid: string): void {
    this.#kids.add(kid);
    const [oldest] = this.#kids;
    if (this.#kids.size > MAX_KIDS && oldest !== undefined) this.#kids.delete(oldest);
  }

  /** The keys have changed. */
  clear(): void {
    this.#kids.clear();
  }

  #begin(): void {
    this.#lookUps = 0;
  }
}
