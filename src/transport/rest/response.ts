import {
  create,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { mapInSlices } from "../../lib/time-slices.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import { LONG_LIST } from "../wire/long-message.ts";

type Init = MessageInitShape<DescMessage>;
type ListOfMessages = Extract<DescField, { fieldKind: "list"; listKind: "message" }>;

/** JSON, as text or in UTF-8. */
export type Json = string | Buffer;

/** Returns the JSON of a response message or its init shape: in snake_case, with every field that cannot be absent. */
export function encodeResponse(desc: DescMessage, response: Init, registry: Registry): MaybePromise<Json> {
  const long = desc.fields.filter(isListOfMessages).find((field) => itemsOf(response, field).length >= LONG_LIST);
  return long === undefined ? encode(desc, response, registry) : encodeLong(desc, response, long, registry);
}

function encode(desc: DescMessage, init: Init, registry: Registry): string {
  return JSON.stringify(toJson(desc, create(desc, init), { ...JSON_OPTIONS, registry }));
}

/** Bytes, because a joined text would be encoded in one tick when it is sent. */
async function encodeLong(desc: DescMessage, response: Init, list: ListOfMessages, registry: Registry) {
  const items = await mapInSlices(itemsOf(response, list), (item) => Buffer.from(encode(list.message, item, registry)));
  const others = JSON.parse(encode(desc, { ...response, [list.localName]: [] }, registry));
  delete others[list.name];
  const end = Object.entries(others).map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`);
  const parts = items.flatMap((item, place) => (place === 0 ? [item] : [COMMA, item]));
  return Buffer.concat([Buffer.from(`{"${list.name}":[`), ...parts, Buffer.from(`]${end.join("")}}`)]);
}

const COMMA = Buffer.from(",");

function isListOfMessages(field: DescField): field is ListOfMessages {
  return field.fieldKind === "list" && field.listKind === "message";
}

function itemsOf(response: Init, { localName }: DescField): readonly Init[] {
  const items: unknown = Reflect.get(response, localName);
  return Array.isArray(items) ? items : [];
}

/**
 * Sends the JSON of a response. `Cache-Control` is `no-store` unless the RPC has set another. If the RPC has set an `ETag` that the
 * client already has, the response is 304 without a body (RFC 9110 §13.1.2).
 */
export function sendJson(request: FastifyRequest, reply: FastifyReply, json: Json): FastifyReply {
  if (!reply.hasHeader("cache-control")) reply.header("cache-control", "no-store");
  const { method, headers } = request;
  if (isKnown(method, reply.getHeader("etag"), headers["if-none-match"])) return reply.code(304).send();
  return reply.type("application/json; charset=utf-8").send(json);
}

/** Returns whether the client already has the response with this `etag`, by its If-None-Match. */
export function isKnown(method: string, etag: unknown, known: string | undefined): boolean {
  if (typeof etag !== "string" || known === undefined || (method !== "GET" && method !== "HEAD")) return false;
  // If-None-Match compares weakly (RFC 9110 §8.8.3.2).
  const [wanted, ...tags] = [etag, ...known.split(",")].map((tag) => tag.trim().replace(/^W\/(?=")/, ""));
  return tags.some((tag) => tag === "*" || tag === wanted);
}
