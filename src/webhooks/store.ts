import type { Principal } from "../domain/principal.ts";
import type { Wrapped } from "../domain/wrapped-secret.ts";
import type {
  Attempt,
  Delivery,
  DeliveryState,
  DisableReason,
  EndpointSecrets,
  EndpointUpdate,
  NewDelivery,
  NewEndpoint,
  WebhookEndpoint,
} from "./endpoint.ts";

/** Endpoints, for callers. Methods return null if there is no such endpoint. */
export interface EndpointStore {
  /** Returns null if the id is taken, or there are 100 endpoints. */
  add(endpoint: NewEndpoint, principal: Principal): Promise<WebhookEndpoint | null>;
  find(endpointId: string): Promise<WebhookEndpoint | null>;
  list(): Promise<WebhookEndpoint[]>;
  /** An update that changes nothing is no event, and keeps `updateTime`. */
  update(endpointId: string, update: EndpointUpdate, time: Date, principal: Principal): Promise<WebhookEndpoint | null>;
  delete(endpointId: string, principal: Principal): Promise<boolean>;
  /** The current secret becomes the old one until `oldExpireTime`. */
  rotate(
    endpointId: string,
    secret: Wrapped,
    times: { readonly time: Date; readonly oldExpireTime: Date },
    principal: Principal,
  ): Promise<WebhookEndpoint | null>;
  /** Moves the position back to `seq`. Null also if the endpoint is disabled. */
  replay(endpointId: string, seq: number, principal: Principal): Promise<WebhookEndpoint | null>;
  /** Adds a delivery that is due now. Null also if the endpoint is disabled. */
  addDelivery(delivery: NewDelivery): Promise<Delivery | null>;
  /** Returns the deliveries of an endpoint that were created before `after`, newest first. */
  deliveries(endpointId: string, after: string | null, limit: number): Promise<Delivery[]>;
  findDelivery(endpointId: string, deliveryId: string): Promise<Delivery | null>;
  /** Makes a delivery due now, unless an attempt is in flight. No-op if the endpoint is disabled. */
  redeliver(endpointId: string, deliveryId: string): Promise<void>;
}

export interface SecretStore {
  secrets(): Promise<EndpointSecrets[]>;
  /** Replaces the wrapped secrets, if the current one is still `before`. */
  rewrap(secrets: EndpointSecrets, before: Wrapped): Promise<void>;
}

/** An endpoint without deliveries for the events from `nextSeq` on. */
export interface EndpointBehind {
  readonly endpointId: string;
  readonly eventTypes: readonly string[];
  readonly filter: string;
  readonly nextSeq: number;
  /** The size of the log. */
  readonly size: number;
}

/** The events from `from` to before `next`, of which the log has `count`. */
export interface EventRange {
  readonly from: number;
  readonly next: number;
  readonly count: number;
}

export interface DispatchStore {
  behind(): Promise<EndpointBehind[]>;
  /**
   * Adds the deliveries of a range of events, and moves the positions of the endpoints behind it, in one transaction. Passes over endpoints whose
   * position is another one, or that are locked. Returns the number of endpoints that were moved: none if the log has other events in the range.
   */
  dispatch(range: EventRange, endpointIds: readonly string[], deliveries: readonly NewDelivery[]): Promise<number>;
}

/** A delivery that this node attempts. No other one does before the lease has expired. */
export interface Claimed extends EndpointSecrets {
  readonly deliveryId: string;
  readonly url: string;
  readonly body: string;
  /** Attempts that were made. */
  readonly attempts: number;
  readonly lease: string;
}

/** What an attempt has come to. */
export interface AttemptResult extends Omit<Attempt, "time"> {
  readonly state: DeliveryState;
  /** Milliseconds until the next attempt; null: none follows. */
  readonly delay: number | null;
  /** Whether the receiver wants no more requests. */
  readonly isGone: boolean;
}

export interface QueueStore {
  /** Claims deliveries that are due: at most `limit`, and of an endpoint at most `perEndpoint` with those in flight. */
  claim(limit: number, perEndpoint: number, inFlight: ReadonlyMap<string, number>): Promise<Claimed[]>;
  /**
   * Records an attempt, and disables the endpoint if the receiver is gone, or all attempts of days have failed. No-op if the lease was lost.
   * Returns why the endpoint was disabled.
   */
  record(
    delivery: Pick<Claimed, "deliveryId" | "endpointId" | "lease">,
    result: AttemptResult,
  ): Promise<DisableReason | null>;
  /** Deletes finished deliveries that are older than 30 days. */
  deleteOld(): Promise<void>;
  /** The number of deliveries that wait for an attempt, and the milliseconds for which the first is due. */
  stats(): Promise<{ readonly pending: number; readonly lag: number }>;
}
