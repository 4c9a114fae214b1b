import { create, toBinary } from "@bufbuild/protobuf";
import { QuotaPeriodSchema } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { LimitStatusSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { limitStatuses } from "../../api/v2alpha1/rate-limits.ts";
import { isQuota, type Limit, type LimitStatus } from "../../domain/rate-limit.ts";
import { memoizeByIdentity } from "../../lib/memoize.ts";
import { writeVarint } from "./stream-messages.ts";

/** Returns the states of limits in a response. */
export function limitStatesOf(response: object): readonly LimitStatus[] {
  return "limitStates" in response ? (response.limitStates as readonly LimitStatus[]) : NONE;
}

const NONE: readonly LimitStatus[] = [];

/** Writes the JSON of states, as the library would, without brackets. */
export function writeStatesJson(states: readonly LimitStatus[]): string {
  let json = "";
  for (const state of states) json += json === "" ? writeStateJson(state) : `,${writeStateJson(state)}`;
  return json;
}

function writeStateJson({ limit, remaining, resetTime, retryAfter, isExceeded }: LimitStatus): string {
  const { json, jsonEnd } = formOf(limit);
  const left = remaining === null ? "" : `,"remaining":${remaining}`;
  const reset = resetTime === null ? "" : `,"reset_time":"${timeText(secondsOf(resetTime))}"`;
  const delay = retryAfter === null ? "" : `,"retry_delay":"${delayText(Math.ceil(retryAfter))}"`;
  return `${json}${left}${reset}${delay},"exceeded":${isExceeded}${jsonEnd}`;
}

/** What all states of a limit have in common. The limits of cached keys are few objects. */
const formOf = memoizeByIdentity((limit: Limit) => {
  const state = { limit, cost: 1, remaining: null, resetTime: null, retryAfter: null, isExceeded: false };
  const message = create(LimitStatusSchema, limitStatuses([state])[0]);
  const { name, quota, window, burst, period } = message;
  const periodName = period === undefined ? undefined : QuotaPeriodSchema.value[period]?.name;
  return {
    json: JSON.stringify({ name, quota, window, burst }).slice(0, -1),
    jsonEnd: isQuota(limit) ? `,"period":"${periodName}"}` : "}",
    proto: toBinary(LimitStatusSchema, create(LimitStatusSchema, { name, quota, window, burst })),
    period,
  };
});

/** The precision of `reset_time`. */
function secondsOf(time: number): number {
  return Math.ceil(time / 1000);
}

/** Most calls of a second have one of few times. */
let last = { seconds: Number.NaN, text: "" };

function timeText(seconds: number): string {
  if (last.seconds !== seconds) {
    last = { seconds, text: new Date(seconds * 1000).toISOString().replace(".000Z", "Z") };
  }
  return last.text;
}

/** https://protobuf.dev/programming-guides/json/ : a duration has no fraction, or three digits. */
function delayText(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  return `${Number.isInteger(seconds) ? seconds : seconds.toFixed(3)}s`;
}

/** The tag of the field `limits`: number 15, length-delimited (https://protobuf.dev/programming-guides/encoding/). */
const LIMITS = 0x7a;
/** Of the fields of a state after the limit, and of those of a time or duration. */
const [REMAINING, RESET_TIME, RETRY_DELAY, EXCEEDED, PERIOD] = [0x28, 0x32, 0x3a, 0x40, 0x48];
const [SECONDS, NANOS] = [0x08, 0x10];

/** The bytes of a tag and a length of two bytes, before the state; and those of its fields after the limit, at most. */
const [HEAD, REST] = [3, 48];

/** Returns the binary form of a `VerifyApiKeyResponse` that has the states alone. */
export function encodeStates(states: readonly LimitStatus[]): Uint8Array {
  const [state] = states;
  return states.length === 1 && state !== undefined ? encodeState(state) : Buffer.concat(states.map(encodeState));
}

function encodeState({ limit, remaining, resetTime, retryAfter, isExceeded }: LimitStatus): Uint8Array {
  const { proto, period } = formOf(limit);
  const bytes = Buffer.allocUnsafe(HEAD + proto.length + REST);
  bytes.set(proto, HEAD);
  let end = HEAD + proto.length;
  if (remaining !== null) end = writeField(bytes, end, REMAINING, remaining);
  if (resetTime !== null) end = writeTime(bytes, end, RESET_TIME, secondsOf(resetTime), 0);
  if (retryAfter !== null) {
    const milliseconds = Math.ceil(retryAfter);
    end = writeTime(bytes, end, RETRY_DELAY, Math.floor(milliseconds / 1000), (milliseconds % 1000) * 1e6);
  }
  if (isExceeded) end = writeField(bytes, end, EXCEEDED, 1);
  if (period !== undefined) end = writeField(bytes, end, PERIOD, period);
  const length = end - HEAD;
  const first = length < 0x80 ? 1 : 0;
  bytes[first] = LIMITS;
  writeVarint(bytes, first + 1, length);
  return bytes.subarray(first, end);
}

function writeField(bytes: Buffer, at: number, tag: number, value: number): number {
  bytes[at] = tag;
  return writeVarint(bytes, at + 1, value);
}

/** Writes a time or duration, whose fields are absent if they are 0. */
function writeTime(bytes: Buffer, at: number, tag: number, seconds: number, nanos: number): number {
  let end = at + 2;
  if (seconds !== 0) end = writeField(bytes, end, SECONDS, seconds);
  if (nanos !== 0) end = writeField(bytes, end, NANOS, nanos);
  bytes[at] = tag;
  bytes[at + 1] = end - at - 2;
  return end;
}
