import { create, type DescField, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { mapInSlices } from "../../lib/time-slices.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import type { Json } from "../wire/json-response.ts";
import { LONG_LIST } from "../wire/protobuf.ts";

type Init = MessageInitShape<DescMessage>;
type ListOfMessages = Extract<DescField, { fieldKind: "list"; listKind: "message" }>;

/** Returns the JSON of a response message or its init shape: in snake_case, with every field that cannot be absent. */
export function encodeResponse(desc: DescMessage, response: Init): MaybePromise<Json> {
  const lists = desc.fields.filter((field) => field.fieldKind === "list" && field.listKind === "message");
  const long = lists.find((field) => itemsOf(response, field).length >= LONG_LIST);
  return long === undefined ? writeJson(desc, response) : encodeLong(desc, response, long);
}

/** Returns the JSON of a message of any length in one step. */
export function writeJson(desc: DescMessage, init: Init): string {
  return JSON.stringify(toJson(desc, create(desc, init), JSON_OPTIONS));
}

/** Returns bytes, because a joined text would be encoded in a single tick when it is sent. */
async function encodeLong(desc: DescMessage, response: Init, list: ListOfMessages) {
  const items = await mapInSlices(itemsOf(response, list), (item) => Buffer.from(writeJson(list.message, item)));
  const rest = JSON.parse(writeJson(desc, { ...response, [list.localName]: [] }));
  delete rest[list.name];
  const end = Object.entries(rest).map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`);
  const parts = items.flatMap((item, place) => (place === 0 ? [item] : [COMMA, item]));
  return Buffer.concat([Buffer.from(`{"${list.name}":[`), ...parts, Buffer.from(`]${end.join("")}}`)]);
}

const COMMA = Buffer.from(",");

function itemsOf(response: Init, { localName }: DescField): readonly Init[] {
  const items: unknown = Reflect.get(response, localName);
  return Array.isArray(items) ? items : [];
}
