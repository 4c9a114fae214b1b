import { randomBytes } from "node:crypto";
import type { DescMessage } from "@bufbuild/protobuf";
import type { Json } from "../rest.ts";
import { messageJson, type Reply } from "./call.ts";

/** Returns a unique text; `normalForm` removes its unique part. */
export function unique(text: string): string {
  return `${text}~${randomBytes(6).toString("hex")}`;
}

/** Values that differ between calls, and their replacements. */
const RANDOM: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<id>"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z/g, "<time>"],
  [/~[0-9a-f]{12}/g, "~"],
  [/\bkh_v1_[0-9A-Za-z]{60,}/g, "<secret>"],
  [/\bwhsec_[0-9A-Za-z+/]{43}=/g, "<secret>"],
  [/"next_seq":"\d+"/g, '"next_seq":"<seq>"'],
  // The server may have attempted a webhook delivery since.
  [/"attempts":\[[^\]]*\]/g, '"attempts":[]'],
  [/\bkh_v1_…[0-9A-Za-z]{4}/g, "<hint>"],
  [/#eyJ[\w-]+\.\.[\w.-]+/g, "#<token>"],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, "<jwt>"],
  [/\bAg[\w-]{80,}/g, "<macaroon>"],
  [/(?<="x":")[\w-]{43}(?=")/g, "<public key>"],
  [/(?<="kid":")[\w-]+(?=")/g, "<kid>"],
];

/** Headers that accompany an error. */
const HEADERS = ["www-authenticate", "retry-after"];

/** Returns a response as JSON without values that differ between calls, so that responses of different protocols can be compared. */
export function normalForm<O extends DescMessage>(output: O, reply: Reply<O>): Json {
  if (reply.ok) return withoutRandom(messageJson(output, reply.message));
  const { code, message, details } = reply;
  const headers = Object.fromEntries(HEADERS.flatMap((name) => pair(name, reply.headers.get(name))));
  return withoutRandom({ code, message, details, headers });
}

function pair(name: string, value: string | null): [string, string][] {
  return value === null ? [] : [[name, value]];
}

/** A last_used_time appears seconds after a use, when it is written. */
export function withoutRandom(value: Json): Json {
  const text = JSON.stringify(value, (name, member) => (name === "last_used_time" ? undefined : member));
  return JSON.parse(RANDOM.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text));
}
