import type { Wrapped } from "../domain/wrapped-secret.ts";

export const MAX_ENDPOINTS = 100;

/** Why nothing is sent to an endpoint: a caller has disabled it, the receiver has answered 410, or all attempts of days have failed. */
export type DisableReason = "caller" | "gone" | "failing";

/** What a caller chooses about an endpoint. */
export interface EndpointFields {
  readonly url: string;
  readonly eventTypes: readonly string[];
  /** As in lists of the audit log; empty: all events. */
  readonly filter: string;
  readonly description: string;
}

/** A URL to which events of the audit log are sent. */
export interface WebhookEndpoint extends EndpointFields {
  readonly endpointId: string;
  readonly createTime: Date;
  readonly createdBy: string;
  readonly updateTime: Date;
  /** Null: it is not disabled. */
  readonly disableTime: Date | null;
  readonly disableReason: DisableReason | null;
  readonly secretRotateTime: Date | null;
  /** When the previous secret ceases to sign. */
  readonly oldSecretExpireTime: Date | null;
  /** The first event without a delivery. */
  readonly nextSeq: number;
}

export type NewEndpoint = EndpointFields &
  Pick<WebhookEndpoint, "endpointId" | "createTime" | "createdBy"> & { readonly secret: Wrapped };

/** Changes of an endpoint; absent fields stay as they are. */
export type EndpointUpdate = Partial<EndpointFields & { readonly disabled: boolean }>;

/** The secrets that sign for an endpoint, wrapped. */
export interface EndpointSecrets {
  readonly endpointId: string;
  readonly secret: Wrapped;
  /** Signs too during the grace period of a rotation. */
  readonly oldSecret: Wrapped | null;
}

export type DeliveryState = "pending" | "succeeded" | "failed";

export interface Attempt {
  readonly time: Date;
  /** Null: there was no response. */
  readonly httpStatus: number | null;
  /** Null: it succeeded. */
  readonly error: string | null;
  /** Milliseconds. */
  readonly durationMs: number;
}

/** An event for an endpoint. */
export interface Delivery {
  /** `webhook-id`. */
  readonly deliveryId: string;
  readonly endpointId: string;
  /** Null: a test event. */
  readonly seq: number | null;
  readonly eventType: string;
  readonly state: DeliveryState;
  readonly createTime: Date;
  /** Null: no attempt follows. */
  readonly nextAttemptTime: Date | null;
  /** The last ones, newest first. */
  readonly attempts: readonly Attempt[];
}

/** What is stored of a delivery when it is created. */
export interface NewDelivery {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly seq: number | null;
  readonly eventType: string;
  /** The same in each attempt. */
  readonly body: string;
}
