import { type Fields, UNUSUAL } from "./unusual.ts";

const TWO_DIGITS: readonly string[] = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, "0"));

const SECONDS_OF_DAY = 86_400;
/** From 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z, as google/protobuf/timestamp.proto bounds it. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;

/** A `google.protobuf.Timestamp` as ProtoJSON has it: RFC 3339 in UTC with 0, 3, 6 or 9 digits of a second's fraction. */
export function timestampText({ seconds, nanos }: Fields): string {
  if (typeof seconds !== "bigint" || typeof nanos !== "number") throw UNUSUAL;
  const second = Number(seconds);
  if (second < FIRST_SECOND || second > LAST_SECOND) throw UNUSUAL;
  const day = Math.floor(second / SECONDS_OF_DAY);
  return `${dateText(day)}${clockText(second - day * SECONDS_OF_DAY)}${nanos === 0 ? "Z" : fractionText(nanos)}`;
}

/** By the day, counted from 1970-01-01, with the `T` behind it. No key lives longer than so many days. */
const dates = new Map<number, string>();
const MAX_DATES = 4000;

/** `Date` takes three times as long as all the rest of a time. */
function dateText(day: number): string {
  const known = dates.get(day);
  if (known !== undefined) return known;
  const text = new Date(day * SECONDS_OF_DAY * 1000).toISOString().slice(0, "0001-01-01T".length);
  if (dates.size === MAX_DATES) dates.clear();
  dates.set(day, text);
  return text;
}

function clockText(second: number): string {
  const minute = Math.trunc(second / 60);
  return `${twoDigits(Math.trunc(minute / 60))}:${twoDigits(minute % 60)}:${twoDigits(second % 60)}`;
}

function twoDigits(n: number): string {
  return TWO_DIGITS[n] ?? "";
}

function fractionText(nanos: number): string {
  if (!Number.isInteger(nanos) || nanos < 0 || nanos > 999_999_999) throw UNUSUAL;
  const digits = String(nanos).padStart(9, "0");
  if (digits.endsWith("000000")) return `.${digits.slice(0, 3)}Z`;
  return `.${digits.endsWith("000") ? digits.slice(0, 6) : digits}Z`;
}
