import type { KeyRing } from "../domain/server-keys.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { DisableReason } from "./endpoint.ts";
import { signingSecrets } from "./secret.ts";
import { afterAttempt, type NextStep } from "./sending/schedule.ts";
import type { AttemptOutcome, WebhookSender } from "./sending/sender.ts";
import type { AttemptResult, Claimed, QueueStore } from "./store.ts";

export interface DelivererOptions {
  readonly store: QueueStore;
  readonly sender: WebhookSender;
  /** The key ring "webhook-secret-wrap". */
  readonly ring: KeyRing;
  /** Called when an attempt has ended, so that others may begin. */
  readonly onEnd: (outcome: NextStep["next"]) => void;
  readonly onDisabled: (endpointId: string, reason: DisableReason) => void;
  /** Called when the result of an attempt could not be recorded: it is repeated when its lease has expired. */
  readonly onError: (error: unknown) => void;
}

/** Attempts in flight: for one endpoint, so that a slow receiver delays no other, and for this node. */
const MAX_PER_ENDPOINT = 4;
const MAX_IN_FLIGHT = 64;

/** Milliseconds for which a stop waits for attempts in flight. */
const STOP_TIMEOUT = 5_000;

/** Sends the deliveries that are due. */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #perEndpoint = new Map<string, number>();
  readonly #stopped = new AbortController();
  #isStopping = false;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** Begins as many attempts as may be in flight, and does not wait for their end. Calls must not overlap. */
  async run(): Promise<void> {
    const limit = MAX_IN_FLIGHT - this.#inFlight.size;
    if (this.#isStopping || limit === 0) return;
    for (const delivery of await this.#options.store.claim(limit, MAX_PER_ENDPOINT, this.#perEndpoint)) {
      this.#count(delivery.endpointId, 1);
      const attempt = this.#attempt(delivery).finally(() => {
        this.#inFlight.delete(attempt);
        this.#count(delivery.endpointId, -1);
      });
      this.#inFlight.add(attempt);
    }
  }

  /** Waits for the attempts in flight. What is left is aborted, and repeated when its lease has expired. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await withTimeout(Promise.all(this.#inFlight), STOP_TIMEOUT, () => this.#stopped.abort());
    await Promise.all(this.#inFlight);
  }

  #count(endpointId: string, change: number): void {
    const count = (this.#perEndpoint.get(endpointId) ?? 0) + change;
    if (count === 0) this.#perEndpoint.delete(endpointId);
    else this.#perEndpoint.set(endpointId, count);
  }

  /** Never rejects. */
  async #attempt(delivery: Claimed): Promise<void> {
    const { store, onEnd, onDisabled, onError } = this.#options;
    try {
      const outcome = await this.#send(delivery);
      const step = afterAttempt(delivery.attempts + 1, outcome, Math.random);
      const disabled = await store.record(delivery, resultOf(outcome, step));
      if (disabled !== null) onDisabled(delivery.endpointId, disabled);
      onEnd(step.next);
    } catch (error) {
      if (!this.#stopped.signal.aborted) onError(error);
    }
  }

  async #send(delivery: Claimed): Promise<AttemptOutcome> {
    const { sender, ring } = this.#options;
    const { deliveryId: id, url, body } = delivery;
    let secrets: Uint8Array[];
    try {
      secrets = signingSecrets(delivery, ring);
    } catch (error) {
      return { status: null, error: (error as Error).message, retryAfter: null, duration: 0 };
    }
    return sender.send({ url, id, body, secrets }, this.#stopped.signal);
  }
}

function resultOf({ status, error, duration }: AttemptOutcome, step: NextStep): AttemptResult {
  const state = step.next === "retry" ? "pending" : step.next === "succeeded" ? "succeeded" : "failed";
  return {
    ...{ httpStatus: status, error, durationMs: Math.round(duration), state },
    delay: step.next === "retry" ? step.delay : null,
    isGone: step.next === "gone",
  };
}
