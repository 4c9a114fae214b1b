import { CHECKPOINT_EVENT } from "./event-types.ts";

/** The part of an event of the audit log that a webhook has. */
export interface WebhookEvent {
  readonly seq: number;
  readonly time: Date;
  readonly action: string;
  readonly keyId: string | null;
  readonly actorId: string | null;
  readonly resourceId: string | null;
  /** The changed fields by name. */
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

/** A message without a position in the log is a test. */
export type PayloadEvent = Omit<WebhookEvent, "seq"> & { readonly seq: number | null };

/**
 * Returns the body of a message: the required attributes of CloudEvents 1.0, and those of Standard Webhooks. It has no more of the event than
 * where to read it, so that a receiver whose secret was stolen reveals nothing else; and a checkpoint of the log, which is to be kept elsewhere.
 */
export function payloadOf(event: PayloadEvent, type: string, id: string, source: string): string {
  const { seq, action, keyId, actorId, resourceId, after } = event;
  const checkpoint = action === CHECKPOINT_EVENT ? after?.checkpoint : undefined;
  const time = event.time.toISOString();
  const subject = keyId ?? resourceId;
  return JSON.stringify({
    ...{ specversion: "1.0", id, source, type, time, timestamp: time },
    ...(subject !== null && { subject }),
    data: { seq, action, key_id: keyId, actor_id: actorId, resource_id: resourceId, checkpoint },
  });
}
