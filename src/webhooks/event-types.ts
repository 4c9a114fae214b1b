import { invalidArgument, invalidArguments } from "../domain/errors.ts";
import { suggestion } from "../lib/nearest-name.ts";

/** Every event of the audit log. */
export const ANY_EVENT = "*";

/** The type of an event that a caller sends to test an endpoint. */
export const TEST_EVENT = "webhook.test";

/** The type of an event by which a key has become an admin token: it had no scope over Keyhold, and has received one. */
export const ADMIN_TOKEN_CREATED = "admin_token.created";

/** The action of an event with a checkpoint of the audit log. */
export const CHECKPOINT_EVENT = "audit.checkpoint";

/** The actions of the audit log that an endpoint can select, by the names that they have there, and a part of them. */
export const EVENT_TYPES = [
  ANY_EVENT,
  "key.issued",
  "key.imported",
  "key.updated",
  "key.rotated",
  "key.revoked",
  "key.deleted",
  "key.disabled",
  "key.enabled",
  "key.expiring",
  "key.expired",
  "limit.exceeded",
  "signing_key.rotated",
  ADMIN_TOKEN_CREATED,
  CHECKPOINT_EVENT,
] as const;

/** Throws `INVALID_ARGUMENT` naming `field` if there is no type, or one that does not exist. */
export function checkEventTypes(eventTypes: readonly string[], field: string): void {
  if (eventTypes.length === 0) throw invalidArgument(field, "must not be empty", "FIELD_REQUIRED");
  const violations = eventTypes.flatMap((type, index) => {
    if (EVENT_TYPES.some((known) => known === type)) return [];
    const description = `is not an event type${suggestion(type, EVENT_TYPES) || `: ${EVENT_TYPES.join(", ")}`}`;
    return [{ field: `${field}[${index}]`, description, reason: "VALUE_NOT_ALLOWED" as const }];
  });
  if (violations.length > 0) throw invalidArguments(violations);
}
