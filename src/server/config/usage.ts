import { type DurationBounds, parseDuration } from "../../domain/duration.ts";
import { type Get, oneOf } from "./values.ts";

/** In milliseconds. More days would make queries slow, which read a partition for each. */
const RETENTION_BOUNDS: DurationBounds = { min: 86_400_000, max: 400 * 86_400_000 };

/** Returns how long the usage of keys is kept by hour, in milliseconds; null: it is not counted. */
export function toUsage(get: Get) {
  const isOn = oneOf("KEYHOLD_USAGE", get("KEYHOLD_USAGE") ?? "on", ["on", "off"]) === "on";
  const retention = parseDuration(get("KEYHOLD_USAGE_RETENTION") ?? "90d", "KEYHOLD_USAGE_RETENTION", RETENTION_BOUNDS);
  return { retention: isOn ? retention : null };
}
