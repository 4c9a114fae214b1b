import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { StructSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { Seeded } from "./seeded.ts";

/** Lengths on both sides of the limits in the protos, and some below all of them. */
const LENGTHS = [0, 1, 2, 5, 19, 128, 129, 255, 256, 1000, 1001, 2048, 4096, 4097, 8192, 8193];
const FEW = 3;
const COUNTS = [0, 1, 2, 3, 64, 65, 100, 101, 1000, 1001];
const UNITS = ["a", "~", "\u00e9", "\u{1f511}"];
const TEXTS = ["a", "orders.read", "issuedApiKeys", "importedApiKeys", "24h", "*", "name"];
const ODD_TEXTS = ["", " ", "a b", "a\n", "\u00e9", "\0", "a\0", "\ud800", "a\udc00b", "\ufeff"];
const NUMBERS = [0, 1, 2, 3, 4, 5, 99, -1, 2 ** 31 - 1];

/**
 * Returns a random message of a type of the API, mostly valid and partly beyond limits: `oddity` is the percentage of values that are
 * chosen from invalid or unusual ones.
 */
export function randomMessage(schema: DescMessage, random: Seeded, oddity: number): Message {
  const message = reflect(schema, create(schema));
  for (const field of schema.fields) {
    if (random.below(100) >= 70 + (100 - oddity) / 4) continue;
    const value = randomValue(field, random, oddity);
    if (value !== undefined) Reflect.set(message.message, field.localName, value);
  }
  return message.message;
}

function randomValue(field: DescField, random: Seeded, oddity: number): unknown {
  switch (field.fieldKind) {
    case "scalar":
      return field.scalar === ScalarType.STRING ? randomText(random, oddity) : randomNumber(random, oddity);
    case "enum":
      return randomNumber(random, oddity);
    case "message":
      return randomNested(field.message, random, oddity);
    case "list":
      return randomList(field, randomCount(random, oddity), random, oddity);
    case "map":
      return randomMap(randomCount(random, oddity), random, oddity);
  }
}

/** The entries of a large list are valid, so that only its size is tested. */
function randomList({ message }: DescField, count: number, random: Seeded, oddity: number): unknown[] {
  const item = () => (message === undefined ? randomText(random, count > FEW ? 0 : oddity) : create(message));
  return Array.from({ length: count }, item);
}

function randomMap(count: number, random: Seeded, oddity: number): Record<string, string> {
  const text = () => randomText(random, count > FEW ? 0 : oddity);
  const key = (index: number) => (count <= FEW && random.below(100) < oddity ? text() : `k${index}`);
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [key(index), text()]));
}

function randomNested(schema: DescMessage, random: Seeded, oddity: number): unknown {
  if (schema.typeName === StructSchema.typeName)
    return { [randomText(random, oddity)]: [randomText(random, oddity), 1] };
  return schema.typeName === TimestampSchema.typeName ? undefined : randomMessage(schema, random, oddity);
}

function randomText(random: Seeded, oddity: number): string {
  if (random.below(100) >= oddity) return random.pick(TEXTS);
  return random.below(2) === 0 ? random.pick(ODD_TEXTS) : random.pick(UNITS).repeat(random.pick(LENGTHS));
}

function randomCount(random: Seeded, oddity: number): number {
  return random.below(100) < oddity ? random.pick(COUNTS) : random.below(FEW + 1);
}

function randomNumber(random: Seeded, oddity: number): number {
  return random.below(100) < oddity ? random.pick(NUMBERS) : random.below(3);
}
