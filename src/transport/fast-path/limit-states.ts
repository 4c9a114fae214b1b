import { create, toBinary, toJson } from "@bufbuild/protobuf";
import { LimitStatusSchema, VerifyApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { limitStatuses } from "../../api/v2alpha1/rate-limits.ts";
import { isQuota, type Limit, type LimitStatus } from "../../domain/rate-limit.ts";
import { memoizeByIdentity } from "../../lib/memoize.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import { writeVarint } from "./stream-messages.ts";

/** Returns the states of limits in a response. */
export function limitStatesOf(response: object): readonly LimitStatus[] {
  return "limitStates" in response ? (response.limitStates as readonly LimitStatus[]) : NONE;
}

const NONE: readonly LimitStatus[] = [];

/** Returns whether the state has its usual fields: any other is left to the library. */
function isUsual({ limit, remaining, resetTime, retryAfter, isExceeded }: LimitStatus): boolean {
  return !isExceeded && retryAfter === null && remaining !== null && resetTime !== null && !isQuota(limit);
}

/** Writes the JSON of states, as the library would, without brackets. */
export function writeStatesJson(states: readonly LimitStatus[]): string {
  return states.map(writeStateJson).join(",");
}

function writeStateJson(state: LimitStatus): string {
  const { limit, remaining, resetTime } = state;
  if (!isUsual(state)) return libraryJson(state);
  return `${jsonStart(limit)},"remaining":${remaining},"reset_time":"${timeText(secondsOf(resetTime))}","exceeded":false}`;
}

function libraryJson(state: LimitStatus): string {
  const [message] = limitStatuses([state]);
  return JSON.stringify(toJson(LimitStatusSchema, create(LimitStatusSchema, message), JSON_OPTIONS));
}

/** The limits of cached keys are few objects. */
const jsonStart = memoizeByIdentity((limit: Limit) => {
  const { name, quota, window, burst } = messageOf(limit);
  return JSON.stringify({ name, quota, window, burst }).slice(0, -1);
});

function messageOf(limit: Limit) {
  const state = { limit, remaining: null, resetTime: null, retryAfter: null, isExceeded: false };
  return create(LimitStatusSchema, limitStatuses([state])[0]);
}

/** The precision of `reset_time`. */
function secondsOf(time: number | null): number {
  return Math.ceil((time ?? 0) / 1000);
}

/** Most calls of a second have one of few times. */
let last = { seconds: Number.NaN, text: "" };

function timeText(seconds: number): string {
  if (last.seconds !== seconds) {
    last = { seconds, text: new Date(seconds * 1000).toISOString().replace(".000Z", "Z") };
  }
  return last.text;
}

/** The tag of the field `limits`: number 15, length-delimited. */
const LIMITS = 0x7a;
/** Of the fields `remaining` and `reset_time` of a state, and of `seconds` of a time. */
const [REMAINING, RESET_TIME, SECONDS] = [0x28, 0x32, 0x08];

/** Returns the binary form of a `VerifyApiKeyResponse` that has the states alone. */
export function encodeStates(states: readonly LimitStatus[]): Uint8Array {
  const [state] = states;
  if (states.length !== 1 || state === undefined || !isUsual(state)) {
    const limits = limitStatuses(states);
    return toBinary(VerifyApiKeyResponseSchema, create(VerifyApiKeyResponseSchema, { limits }));
  }
  return encodeState(state);
}

/** The bytes of a tag and a length of two bytes, before the state; and those of its fields after the limit, at most. */
const [HEAD, REST] = [3, 20];

function encodeState({ limit, remaining, resetTime }: LimitStatus): Uint8Array {
  const start = protoStart(limit);
  const bytes = Buffer.allocUnsafe(HEAD + start.length + REST);
  bytes.set(start, HEAD);
  let end = HEAD + start.length;
  bytes[end++] = REMAINING;
  end = writeVarint(bytes, end, remaining ?? 0);
  const time = end + 2;
  bytes[time] = SECONDS;
  bytes[end++] = RESET_TIME;
  end = writeVarint(bytes, time + 1, secondsOf(resetTime));
  bytes[time - 1] = end - time;
  const length = end - HEAD;
  const first = length < 0x80 ? 1 : 0;
  bytes[first] = LIMITS;
  writeVarint(bytes, first + 1, length);
  return bytes.subarray(first, end);
}

const protoStart = memoizeByIdentity((limit: Limit) => toBinary(LimitStatusSchema, messageOf(limit)));
