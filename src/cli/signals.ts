import { constants } from "node:os";
import { EXIT_STATUS } from "./exit-status.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Resolves with the name of the next SIGINT or SIGTERM, which does not terminate the process. */
function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of SIGNALS) process.once(signal, resolve);
  });
}

/** Resolves like `nextSignal`; the signal after it calls `exit`. */
export function signalToStop(exit: () => void = () => process.exit(EXIT_STATUS.failed)): Promise<string> {
  const signal = nextSignal();
  void signal.then(nextSignal).then(exit);
  return signal;
}

/** Returns a signal that aborts at the next SIGINT or SIGTERM; the signal after it ends the process at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  void signalToStop(() => process.exit(EXIT_STATUS.interrupted)).then(() => controller.abort());
  return controller.signal;
}

/**
 * Makes SIGINT and SIGTERM terminate process 1 of a container while nothing else listens to them: the kernel ignores signals without a
 * handler for PID 1 (pid_namespaces(7)), so a server that waits for its database could not be stopped.
 */
export function handleSignalsAsInit(): void {
  if (process.pid !== 1) return;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });
  }
}

/** Milliseconds for which idle HTTP/1.1 connections may still send a request after the stop signal. */
export const DRAIN_DELAY = 1_000;
