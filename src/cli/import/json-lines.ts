import { isJsonObject, parseJson } from "../../lib/json.ts";
import { type Format, LINE_FEED } from "./records.ts";

/** JSON Lines (jsonlines.org): an object a line. Node's own words for bad JSON are not used: they quote it. */
export const jsonLines: Format = {
  endOf: (bytes, start) => bytes.indexOf(LINE_FEED, start),
  contentOf: (text) => {
    if (text.trim() === "") return undefined;
    const json = parseJson(text);
    if (json === undefined) return "is not JSON";
    return isJsonObject(json) ? json : "is no JSON object";
  },
};
