/** Processes a batch: one result per item, in order. A rejection concerns no single item. */
export type DoMany<Item, Result> = (items: readonly Item[]) => Promise<readonly Result[]>;

export interface BatchOptions {
  readonly maxInFlight: number;
  readonly maxItems: number;
  /** Whether a failure concerns the whole batch. After any other failure the batch is split in halves, so that a bad item fails alone. */
  readonly concernsAll: (error: unknown) => boolean;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Batches items that arrive one by one. There is no timer: if nothing is in flight, the items of one tick of the event loop are sent at
 * its end. Another batch is sent only when it is as large as those in flight together; otherwise, of many callers
 * that receive their results at once, the first to call again would be sent alone and all others would wait for it.
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

  /** Never rejects: every outcome is passed to the callers. */
  async #send(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#doMany(group.map(({ item }) => item));
      for (const [place, { resolve }] of group.entries()) resolve(results[place] as Result);
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
