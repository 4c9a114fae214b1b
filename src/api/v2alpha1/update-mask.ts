import { create, type DescField, type DescMessage, getOption, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import { type FieldMask, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { FieldBehavior, field_behavior } from "../../../gen/google/api/field_behavior_pb.js";
import type { Quota, RateLimit } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  checkAll,
  type FieldViolation,
  invalidArgument,
  invalidArguments,
  MAX_VIOLATIONS,
} from "../../domain/errors.ts";
import { type ExpiryInput, parseExpiry } from "../../domain/expiry.ts";
import { checkIpRestriction, type IpRestriction } from "../../domain/ip-restriction.ts";
import { type KeyKind, parseKeyId } from "../../domain/key.ts";
import { checkUpdate, type UpdateInput } from "../../keys/update.ts";
import { memoizeByIdentity } from "../../lib/memoize.ts";
import { redactName } from "../../lib/redact-name.ts";
import { checkLimits } from "./rate-limits.ts";

const derived = new WeakSet<FieldMask>();

/**
 * Returns a mask that the client did not send: a protocol derives it from the fields that the resource contains, where its form shows more
 * than the message. In JSON, `"scopes": []` is present; in the message, it is not set.
 */
export function derivedMask(paths: string[]): FieldMask {
  const mask = create(FieldMaskSchema, { paths });
  derived.add(mask);
  return mask;
}

/** The resource in an update request, of either kind of key. */
interface KeyMessage extends ExpiryInput {
  readonly keyId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly actorId: string;
  readonly ipRestriction?: IpRestriction;
  readonly rateLimits: readonly RateLimit[];
  readonly quotas: readonly Quota[];
  readonly restrictedToActorIds?: readonly string[];
}

/** The fields of the resource that an update concerns. One that is present and undefined is cleared. */
type MaskedFields = Partial<Omit<KeyMessage, "keyId">>;

/** Returns the key and the changes of an update request. Throws `INVALID_ARGUMENT` with every invalid field. */
export function readUpdate<S extends DescMessage>(
  kind: KeyKind,
  schema: S,
  key: (MessageShape<S> & KeyMessage) | undefined,
  mask: FieldMask | undefined,
) {
  const field = `${kind}_api_key`;
  if (key === undefined) throw invalidArgument(field, "is required", "FIELD_REQUIRED");
  const [keyId, update] = checkAll(
    () => parseKeyId(key.keyId, `${field}.key_id`),
    () => {
      const update = toUpdate(maskedUpdate<S, KeyMessage>(mask, schema, key), `${field}.`);
      checkUpdate(update, kind);
      return update;
    },
  );
  return { name: { keyId, kind }, update };
}

/** Returns the update with these fields. An expiry or a restriction that is present without a value is cleared. */
function toUpdate(masked: MaskedFields, path: string): UpdateInput {
  const { ttl, expireTime, ipRestriction, rateLimits, quotas, ...fields } = masked;
  const hasExpiry = "ttl" in masked || "expireTime" in masked;
  const [expiry, allowedCidrs, limits] = checkAll(
    () => parseExpiry({ ttl, expireTime }, path),
    () => checkIpRestriction(ipRestriction, `${path}ip_restriction`),
    () => checkLimits({ rateLimits, quotas }, path),
  );
  return {
    ...fields,
    ...(hasExpiry && { expiry }),
    ...("ipRestriction" in masked && { allowedCidrs }),
    ...limits,
  };
}

/**
 * Returns the fields of the update that a request describes (AIP-134): those of the mask; without a mask, or with `*`, the resource as a whole.
 * For a whole resource, output-only fields are ignored, and so is the key_id, which identifies the key. Its immutable fields are included,
 * because only the current record shows whether a change is requested (AIP-203). Its controls (`CONTROLS`) are ignored: a key that is read,
 * modified and sent back, also by a client of a release for which they were output-only, must not undo a concurrent change of who may use
 * the key. Rejects a mask with a field that cannot be updated, because ignoring it would hide a mistake.
 */
export function maskedUpdate<S extends DescMessage, R extends object>(
  mask: FieldMask | undefined,
  schema: S,
  key: MessageShape<S> & R & Pick<ExpiryInput, "ttl">,
): Partial<R> {
  const sent = mask !== undefined && !derived.has(mask) ? new Set(mask.paths) : null;
  if (sent !== null) requireUpdatable(sent, schema);
  const isWhole = sent === null || sent.has("*");
  const fields = schema.fields.filter((field) => sent?.has(field.name) || (isWhole && isOfWhole(field, mask, key)));
  if (!fields.some(isUpdatable)) {
    const unnamed = schema.fields.filter((field) => isControl(field) && isFieldSet(key, field)).map(({ name }) => name);
    const description =
      unnamed.length === 0
        ? `must list at least one of ${updatableNames(schema).join(", ")}`
        : `must list ${unnamed.join(", ")} explicitly`;
    throw invalidArgument("update_mask", description, "FIELD_REQUIRED");
  }
  if (sent !== null) requireTtl(sent, key.ttl);
  const masked = fields.map(({ localName }) => [localName, Reflect.get(key, localName)]);
  return Object.fromEntries(masked) as Partial<R>;
}

/** The fields of a resource that only a mask changes that names them. A `ttl` is in no key that is read. */
const CONTROLS: readonly string[] = ["expire_time", "ip_restriction", "rate_limits", "quotas", "disabled"];

function isControl({ name }: DescField): boolean {
  return CONTROLS.includes(name);
}

/** `ttl` has no value to clear; and if it is set, clearing `expire_time` is not what the caller means. */
function requireTtl(paths: ReadonlySet<string>, ttl: ExpiryInput["ttl"]): void {
  if (paths.has("ttl") && ttl === undefined && !paths.has("expire_time"))
    throw invalidArgument(
      "update_mask",
      "contains ttl, but ttl is not set; to clear the expiry, list expire_time instead",
      "FIELD_REQUIRED",
    );
  if (paths.has("expire_time") && ttl !== undefined && !paths.has("ttl") && !paths.has("*"))
    throw invalidArgument("update_mask", "ttl is set; list ttl instead of expire_time", "VALUE_NOT_ALLOWED");
}

/** Returns whether a change of the whole resource concerns the field: one that is set without a mask, in a derived mask, or any with `*`. */
function isOfWhole<S extends DescMessage>(
  field: DescField,
  mask: FieldMask | undefined,
  key: MessageShape<S>,
): boolean {
  if (!isUpdatable(field)) return roleOf(field) === "immutable" && isFieldSet(key, field);
  if (isControl(field)) return false;
  if (mask === undefined || field.name === "ttl") return isFieldSet(key, field);
  return !derived.has(mask) || mask.paths.includes(field.name);
}

/** Throws `INVALID_ARGUMENT` with the paths of a mask that no update can name. There may be several 100,000. */
function requireUpdatable(paths: ReadonlySet<string>, schema: DescMessage): void {
  const violations: FieldViolation[] = [];
  const updatable = updatableNames(schema);
  for (const path of paths) {
    const field = schema.fields.find(({ name }) => name === path);
    if (path === "*" || (field !== undefined && isUpdatable(field))) continue;
    const description = `${field?.name ?? redactName(path, updatable)} is not one of ${updatable.join(", ")}`;
    const reason = field === undefined ? "UNKNOWN_FIELD" : "FIELD_NOT_UPDATABLE";
    if (violations.push({ field: "update_mask", description, reason }) === MAX_VIOLATIONS) break;
  }
  if (violations.length > 0) throw invalidArguments(violations);
}

function updatableNames({ fields }: DescMessage): string[] {
  return fields.filter(isUpdatable).map(({ name }) => name);
}

const { IDENTIFIER, IMMUTABLE, OUTPUT_ONLY } = FieldBehavior;

/** How an update treats a field. Reading an option takes a hundred times as long as the rest of the mask, so it is read once. */
const roleOf = memoizeByIdentity((field: DescField) => {
  const behaviors = getOption(field, field_behavior);
  if (behaviors.includes(IDENTIFIER) || behaviors.includes(OUTPUT_ONLY)) return "ignored";
  return behaviors.includes(IMMUTABLE) ? "immutable" : "updatable";
});

function isUpdatable(field: DescField): boolean {
  return roleOf(field) === "updatable";
}
