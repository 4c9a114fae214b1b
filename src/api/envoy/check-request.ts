import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import {
  type AttributeContext_HttpRequest,
  CheckRequestSchema,
} from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";

export type CheckedRequest = Readonly<ReturnType<typeof decodeCheckRequest>>;

/** Maximum number of header fields in a `HeaderMap`; Envoy accepts 100 by default. */
const MAX_FIELDS = 2 ** 14;

/** The numbers of fields of `HeaderMap` and `HeaderValue`. */
const HEADERS = 1;
const [KEY, VALUE, RAW_VALUE] = [1, 2, 3];

const WITHOUT_UNKNOWN_FIELDS = { readUnknownFields: false };

/** Decodes the parts of a message that a decision depends on. Throws if it is malformed. */
export function decodeCheckRequest(bytes: Uint8Array) {
  const { attributes } = fromBinary(CheckRequestSchema, bytes, WITHOUT_UNKNOWN_FIELDS);
  const http = attributes?.request?.http;
  return {
    /** False for a connection, which the network filter of Envoy asks about. */
    isHttp: http !== undefined,
    /** The IP address of Envoy's peer; empty if it has none, such as a Unix socket. */
    source: attributes?.source?.address?.socketAddress?.address ?? "",
    path: http?.path ?? "",
    /** The names in lower case and the values of all header fields, in turn. */
    fields: http === undefined ? [] : fieldsOf(http),
    /** The settings of the route. */
    extensions: attributes?.contextExtensions ?? {},
  };
}

/** The list, which Envoy sends with `encode_raw_headers`, has the fields as they were received; in the map, those of one name are joined. */
function fieldsOf({ headers, headerMap }: AttributeContext_HttpRequest): string[] {
  if (headerMap !== undefined) return readHeaderMap(headerMap);
  return Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value]);
}

function readHeaderMap(bytes: Uint8Array): string[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  const reader = new BinaryReader(bytes);
  const fields: string[] = [];
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number !== HEADERS || type !== WireType.LengthDelimited) reader.skip(type, number);
    else readHeader(reader, text, fields);
    if (fields.length > 2 * MAX_FIELDS) throw new RangeError("too many header fields");
  }
  if (reader.pos !== reader.len) throw new RangeError("the header list is truncated");
  return fields;
}

/**
 * Decodes a `HeaderValue`. Each byte of the name, which is ASCII (RFC 9110 §5.1), and of the raw value is a character of `text`, as in the
 * header fields that Node decodes: slices take half the time of strings and byte arrays.
 */
function readHeader(reader: BinaryReader, text: string, fields: string[]): void {
  const end = reader.uint32() + reader.pos;
  let [name, value, rawValue] = ["", "", ""];
  while (reader.pos < end) {
    const [number, type] = reader.tag();
    if (number > RAW_VALUE || type !== WireType.LengthDelimited) reader.skip(type, number);
    else if (number === VALUE) value = reader.string(true);
    else {
      const slice = readSlice(reader, text);
      if (number === KEY) name = slice;
      else rawValue = slice;
    }
  }
  if (reader.pos !== end) throw new RangeError("a header field exceeds its declared length");
  fields.push(name.toLowerCase(), rawValue === "" ? value : rawValue);
}

function readSlice(reader: BinaryReader, text: string): string {
  const length = reader.uint32();
  const start = reader.pos;
  reader.pos += length;
  return text.slice(start, reader.pos);
}
