import { setImmediate as nextTick } from "node:timers/promises";

/** Number of list items from which a message is processed in several ticks of the event loop: a thousand keys may take 12 MB. */
export const LONG_LIST = 100;

/** Resolves in the next tick of the event loop if the message has a long list, so that other calls are served in between. */
export async function yieldIfLong(message: object): Promise<void> {
  const isLong = Object.values(message).some((value) => Array.isArray(value) && value.length >= LONG_LIST);
  if (isLong) await nextTick();
}
