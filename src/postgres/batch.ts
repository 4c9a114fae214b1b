/** Does many at once: one result an item, in order. If it rejects, nothing is said of any item. */
export type DoMany<Item, Result> = (items: readonly Item[]) => Promise<readonly Result[]>;

export interface BatchOptions {
  /** Calls at once, at the most. */
  readonly maxInFlight: number;
  /** Items at the most in one call. */
  readonly maxItems: number;
  /** Whether a failure says nothing of single items. After any other each is tried with fewer, so that a bad one fails alone. */
  readonly concernsAll: (error: unknown) => boolean;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers items that come one by one into calls of many. No timer: when nothing is under way, those of one turn of the event loop
 * go at its end. Beside other calls goes only one that is as large as they are together: else, of many callers whose answers
 * come together, the first to come again would go alone, and all the others wait for it.
 */
export class Batcher<Item, Result> {
  readonly #doMany: DoMany<Item, Result>;
  readonly #options: BatchOptions;
  #waiting: Waiting<Item, Result>[] = [];
  #inFlight = 0;
  #itemsInFlight = 0;
  #isScheduled = false;

  constructor(doMany: DoMany<Item, Result>, options: BatchOptions) {
    this.#doMany = doMany;
    this.#options = options;
  }

  do(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#mayGo()) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendWaiting();
    });
  }

  #mayGo(): boolean {
    const isRoom = this.#inFlight < this.#options.maxInFlight;
    return isRoom && this.#waiting.length >= Math.max(1, this.#itemsInFlight);
  }

  #sendWaiting(): void {
    while (this.#mayGo()) this.#sendNext();
  }

  #sendNext(): void {
    const group = this.#waiting.splice(0, this.#options.maxItems);
    this.#inFlight++;
    this.#itemsInFlight += group.length;
    void this.#send(group).then(() => {
      this.#inFlight--;
      this.#itemsInFlight -= group.length;
      this.#sendWaiting();
    });
  }

  /** Never rejects: all that it learns it tells those who wait. */
  async #send(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#doMany(group.map(({ item }) => item));
      for (const [place, { resolve, reject }] of group.entries()) {
        const result = results[place];
        if (result === undefined) reject(new Error("a call of many answered fewer"));
        else resolve(result);
      }
    } catch (error) {
      if (group.length > 1 && !this.#options.concernsAll(error)) await this.#sendHalves(group);
      else for (const { reject } of group) reject(error);
    }
  }

  async #sendHalves(group: readonly Waiting<Item, Result>[]): Promise<void> {
    const half = Math.ceil(group.length / 2);
    await this.#send(group.slice(0, half));
    await this.#send(group.slice(half));
  }
}
