import { KeyholdError } from "../errors.ts";

/**
 * Calls that wait, in units: a single one is one, a batch one for each ten of its items, which is about what they cost.
 *
 * One process brings some 5,000 such calls a second to an end, so 2,000 are 0.4 s of work: whoever is let in is answered long before
 * a usual caller has lost patience, and whoever is refused may come again after a second, when all of it is done. More would
 * bring nothing but longer waits. It is 4 times what keeps one process busy, and with 20 KB for a request, its promises and its
 * place in a statement, 40 MB.
 */
const MAX_UNITS = 2_000;

/**
 * Bounds the calls of this process that wait for something: the database, or an issuer of access tokens. What is answered from
 * memory, in one turn of the event loop, never comes to it, and is never refused: a refusal would cost as much.
 */
export class UnderWay {
  readonly #max: number;
  #units = 0;

  constructor(max = MAX_UNITS) {
    this.#max = max;
  }

  /** For work that is known to wait: before it begins. Throws `OVERLOADED`. */
  requireRoom(): void {
    if (this.#units >= this.#max) throw overloaded();
  }

  /** Counts work until it ends. Over the bound its outcome is dropped: only for work that changes nothing. */
  async wait<T>(work: Promise<T>, units = 1): Promise<T> {
    if (this.#units >= this.#max) {
      work.catch(() => undefined);
      throw overloaded();
    }
    this.#units += units;
    try {
      return await work;
    } finally {
      this.#units -= units;
    }
  }
}

function overloaded(): KeyholdError {
  return new KeyholdError("OVERLOADED", "too many calls wait already; come again in a second");
}
