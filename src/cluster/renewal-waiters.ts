import { setTimeout as sleep } from "node:timers/promises";
import { toError } from "../lib/to-error.ts";
import { noLease } from "./renewal-errors.ts";

/** Calls that wait for a renewal that is sent after they arrived. */
export class RenewalWaiters {
  #waiters: PromiseWithResolvers<void>[] = [];
  /** Called when a call starts to wait. */
  #wake: () => void = () => undefined;

  /** Resolves when the next renewal is granted. @throws `DATABASE_UNAVAILABLE` */
  wait(): Promise<void> {
    const waiter = Promise.withResolvers<void>();
    this.#waiters.push(waiter);
    this.#wake();
    return waiter.promise;
  }

  /** Returns the calls that wait for the renewal being sent now. They are settled once. */
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

  /** Rejects all waiting calls. */
  refuse(reason?: Error): void {
    for (const { reject } of this.#waiters.splice(0)) reject(noLease(reason));
  }

  /** Resolves after `milliseconds`, or as soon as a call waits. */
  async pause(milliseconds: number): Promise<void> {
    if (this.#waiters.length > 0) return;
    const asked = new AbortController();
    this.#wake = () => asked.abort();
    await sleep(milliseconds, undefined, { signal: asked.signal, ref: false }).catch(() => undefined);
    this.#wake = () => undefined;
  }
}
