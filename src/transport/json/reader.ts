import {
  create,
  type DescMessage,
  isMessage,
  type JsonReadOptions,
  type Message,
  type Registry,
  ScalarType,
} from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import { BODY, parseJson } from "../rest/json-text.ts";
import { RECURSION_LIMIT, readJson } from "../rest/request-decoder.ts";
import { messageReaders } from "./message-reader.ts";
import { countStrings } from "./scan.ts";
import { orGeneric, UNUSUAL } from "./unusual.ts";

export interface JsonReaderOptions {
  /** Types for `google.protobuf.Any` and extensions. */
  readonly registry?: Registry;
}

export type ReadMessage = (bytes: Uint8Array) => Message;

/**
 * Makes the function that reads a message of a type from its JSON in UTF-8, by the rules and with the errors of `parseJson` and
 * `readJson`. What is of the plain form is read without looking at every character, and without their readiness for everything;
 * the rest is read again by them.
 */
export function compileJsonReader(desc: DescMessage, { registry }: JsonReaderOptions = {}): ReadMessage {
  return orGeneric(plainReader(desc), genericReader(desc, registry));
}

/**
 * A name that is given twice is found by counting: `JSON.parse` keeps one member a name, so that its value has fewer strings than
 * the text.
 */
function plainReader(desc: DescMessage): ReadMessage {
  const read = messageReaders()(desc);
  const readAlone = lonelyReader(desc);
  return (bytes) => {
    const text = decode(bytes);
    const alone = readAlone?.(text);
    if (alone !== undefined) return alone;
    const strings = countStrings(text);
    if (strings === undefined) throw UNUSUAL;
    const tally = { strings: 0 };
    const message = read(parse(text), tally);
    if (tally.strings !== strings || !isMessage(message)) throw UNUSUAL;
    return message;
  };
}

/**
 * The reader of a message that has one string and nothing else, such as a credential: where no character of it is escaped there is
 * nothing to parse. Undefined for any other message, and what it gives for any other text.
 */
function lonelyReader(desc: DescMessage): ((text: string) => Message | undefined) | undefined {
  const [field, ...others] = desc.fields;
  if (field === undefined || others.length > 0) return undefined;
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING || field.oneof !== undefined) return undefined;
  const name = `"(?:${field.name}|${field.jsonName})"`;
  const form = new RegExp(`^${["", "\\{", name, ":", STRING, "\\}", ""].join("[ \\t\\n\\r]*")}$`);
  return (text) => {
    const value = form.exec(text)?.[1];
    if (value === undefined) return undefined;
    const message = create(desc);
    Reflect.set(message, field.localName, value);
    return message;
  };
}

/** RFC 8259 §7, without escapes. */
const STRING = '"([^"\\\\\\u0000-\\u001f]*)"';

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw UNUSUAL;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw UNUSUAL;
  }
}

function genericReader(desc: DescMessage, registry: Registry | undefined): ReadMessage {
  const options: JsonReadOptions = { ignoreUnknownFields: false, registry, recursionLimit: RECURSION_LIMIT };
  return (bytes) => {
    const json = parseJson(bytes);
    if (!isJsonObject(json)) throw invalidArgument(BODY, "must be a JSON object");
    return readJson(desc, json, options);
  };
}
