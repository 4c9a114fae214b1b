import { setTimeout as sleep } from "node:timers/promises";
import { toError } from "../lib/to-error.ts";
import { noLease } from "./renewal-errors.ts";

/** Calls that wait for a renewal of the lease that is sent after they came. */
export class RenewalWaiters {
  #waiters: PromiseWithResolvers<void>[] = [];
  /** Called when somebody comes. */
  #wake: () => void = () => undefined;

  /** Resolves when the next renewal is granted. @throws `DATABASE_UNAVAILABLE` */
  wait(): Promise<void> {
    const waiter = Promise.withResolvers<void>();
    this.#waiters.push(waiter);
    this.#wake();
    return waiter.promise;
  }

  /** Hands over those who wait for the renewal that is sent now. They are answered once, whatever is called after that. */
  take(): { grant(): void; refuse(reason: unknown): void } {
    const waiters = this.#waiters.splice(0);
    return {
      grant: () => {
        for (const { resolve } of waiters) resolve();
      },
      refuse: (reason) => {
        for (const { reject } of waiters) reject(noLease(toError(reason)));
      },
    };
  }

  /** Refuses all who wait. */
  refuse(reason?: Error): void {
    for (const { reject } of this.#waiters.splice(0)) reject(noLease(reason));
  }

  /** Resolves after so many milliseconds, or as soon as somebody waits. */
  async pause(milliseconds: number): Promise<void> {
    if (this.#waiters.length > 0) return;
    const asked = new AbortController();
    this.#wake = () => asked.abort();
    await sleep(milliseconds, undefined, { signal: asked.signal, ref: false }).catch(() => undefined);
    this.#wake = () => undefined;
  }
}
