import { type Monotonic, systemMonotonic } from "../../lib/clock.ts";

/**
 * Calls begun per tick of the event loop: about 10 ms of work. A client that has its response sends the next request at once, and libuv
 * keeps reading, up to 48 times 1024 connections, before it runs timers and sends queued statements: with a few thousand busy
 * connections a tick would take seconds. Leases are renewed by timers, and probes have deadlines.
 */
const MAX_PER_TICK = 128;

/** Milliseconds after which a tick begins no further call: batches of 1,000 credentials take 10 ms each. */
const MAX_TICK_TIME = 10;

/**
 * Returns a function that starts work as it arrives, up to a number and a time per tick of the event loop; the rest in the next ticks, in the
 * same order. Work that throws is not started again.
 */
export function createTickBudget<Work>(
  start: (work: Work) => void,
  max = MAX_PER_TICK,
  now: Monotonic = systemMonotonic,
): (work: Work) => void {
  const queue: Work[] = [];
  let started = 0;
  /** When the tick is over, by `now`. */
  let end = 0;
  const hasRoom = () => started < max && (started === 0 || now() < end);
  const begin = () => {
    setImmediate(next);
    end = now() + MAX_TICK_TIME;
  };
  const next = () => {
    started = 0;
    if (queue.length === 0) return;
    begin();
    // What the work below enters comes after all that waits.
    try {
      while (started < queue.length && hasRoom()) start(queue[started++] as Work);
    } finally {
      queue.splice(0, started);
    }
  };
  return (work) => {
    if (queue.length > 0 || !hasRoom()) {
      queue.push(work);
      return;
    }
    if (started === 0) begin();
    started++;
    start(work);
  };
}
