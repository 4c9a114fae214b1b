import { create, type DescMessage, type JsonObject, type JsonReadOptions, type Registry } from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";
import { compileJsonReader } from "../json/reader.ts";
import type { BodyRule } from "./binding.ts";
import { bodyToRequestJson, withFieldMasks } from "./body-json.ts";
import { BODY, parseJson } from "./json-text.ts";
import { RECURSION_LIMIT, type ReadBody, readJson } from "./request-decoder.ts";
import { isFieldMask } from "./update-mask.ts";

const NO_JSON: JsonObject = {};

/** The reader of a request body by its rule. An empty body is a request without fields. */
export function bodyReader(desc: DescMessage, rule: BodyRule, registry: Registry): ReadBody {
  const read = contentReader(desc, rule, registry);
  return (bytes) => (bytes.length === 0 ? { request: create(desc), json: NO_JSON } : read(bytes));
}

function contentReader(desc: DescMessage, rule: BodyRule, registry: Registry): ReadBody {
  if (rule.kind === "none") return refuseContent;
  const masks = desc.fields.filter(isFieldMask);
  if (rule.kind === "whole" && masks.length === 0) {
    const read = compileJsonReader(desc, { registry });
    // The JSON is for an update mask, which this request has not.
    return (bytes) => ({ request: read(bytes), json: NO_JSON });
  }
  const options: JsonReadOptions = { ignoreUnknownFields: false, registry, recursionLimit: RECURSION_LIMIT };
  return (bytes) => {
    const json = withFieldMasks(masks, bodyToRequestJson(desc, rule, parseJson(bytes)));
    return { request: readJson(desc, json, options), json };
  };
}

function refuseContent(): never {
  throw invalidArgument(BODY, "must be empty");
}
