import { constants } from "node:os";
import { EXIT_STATUS } from "./exit-status.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Resolves with the name of the next SIGINT or SIGTERM, which then does not end the process by itself. */
export function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of SIGNALS) process.once(signal, resolve);
  });
}

/** Resolves like `nextSignal`; the signal after it ends the process at once, by `atOnce`. */
export function signalToStop(atOnce: () => void = () => process.exit(EXIT_STATUS.failed)): Promise<string> {
  const signal = nextSignal();
  void signal.then(nextSignal).then(atOnce);
  return signal;
}

/**
 * Gives process 1, as which a command runs in a container, the signals' usual effect while nobody else listens to them: the kernel
 * keeps from it what it has no listener for (pid_namespaces(7)), so a server that waits for its database could not be stopped.
 */
export function obeySignalsAsInit(): void {
  if (process.pid !== 1) return;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });
  }
}

/** Milliseconds for which idle connections of HTTP/1.1 may still bring a request after the order to stop. */
export const DRAIN_DELAY = 1_000;
