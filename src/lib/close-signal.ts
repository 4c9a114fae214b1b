/**
 * Signals once that a long-lived object, such as a connection, has closed. Unlike `Promise.race` with a long-lived promise, it keeps no
 * reaction of each call until the end.
 */
export class CloseSignal {
  readonly #listeners = new Set<(reason: Error) => void>();
  #reason: Error | undefined;

  /** Undefined while open. */
  get reason(): Error | undefined {
    return this.#reason;
  }

  /** Signals the close. Returns false if it was signalled before. */
  end(reason: Error): boolean {
    if (this.#reason !== undefined) return false;
    this.#reason = reason;
    for (const listener of this.#listeners) listener(reason);
    this.#listeners.clear();
    return true;
  }

  /** Calls the listener on close, immediately if already closed. Returns a function that removes it. */
  onEnd(listener: (reason: Error) => void): () => void {
    if (this.#reason !== undefined) listener(this.#reason);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Settles like `work`, or rejects with the reason if the close comes first. */
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
