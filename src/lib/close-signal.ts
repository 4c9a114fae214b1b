/**
 * The end of something that lasts, such as a connection. `Promise.race` with a promise that lasts would leave a reaction on it at
 * every call, for as long as it lasts.
 */
export class CloseSignal {
  readonly #listeners = new Set<(reason: Error) => void>();
  #reason: Error | undefined;

  /** Undefined as long as it lasts. */
  get reason(): Error | undefined {
    return this.#reason;
  }

  /** Ends it, and answers whether it was not over before. */
  end(reason: Error): boolean {
    if (this.#reason !== undefined) return false;
    this.#reason = reason;
    for (const listener of this.#listeners) listener(reason);
    this.#listeners.clear();
    return true;
  }

  /** Calls the listener at the end, or at once if it is over. Answers how to call it off. */
  onEnd(listener: (reason: Error) => void): () => void {
    if (this.#reason !== undefined) listener(this.#reason);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What becomes of the work, or a rejection with the reason if the end comes first. */
  race<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const off = this.onEnd(reject);
      work.then(
        (result) => {
          off();
          resolve(result);
        },
        (error: unknown) => {
          off();
          reject(error);
        },
      );
    });
  }
}
