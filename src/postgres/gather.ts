/** Does many at once: one result an item, in order. If it rejects, nothing is said of any item. */
export type DoMany<Item, Result> = (items: readonly Item[]) => Promise<readonly Result[]>;

export interface GatherOptions {
  /** So many calls go at once by themselves; who comes while they are under way waits, and goes with the others who wait. */
  readonly maxUnderWay: number;
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

/** Gathers items that come one by one into calls of many. No timer: what comes when little is under way goes at once. */
export class Gatherer<Item, Result> {
  readonly #doMany: DoMany<Item, Result>;
  readonly #options: GatherOptions;
  #waiting: Waiting<Item, Result>[] = [];
  #underWay = 0;

  constructor(doMany: DoMany<Item, Result>, options: GatherOptions) {
    this.#doMany = doMany;
    this.#options = options;
  }

  do(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#sendNext();
    });
  }

  #sendNext(): void {
    if (this.#waiting.length === 0 || this.#underWay >= this.#options.maxUnderWay) return;
    this.#underWay++;
    const group = this.#waiting.splice(0, this.#options.maxItems);
    void this.#send(group).then(() => {
      this.#underWay--;
      this.#sendNext();
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
