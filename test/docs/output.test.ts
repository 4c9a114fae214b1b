import { expect, test } from "vitest";
import { expectOutput } from "./output.ts";

const ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

test.for([
  ['{"a":1}', "{}"],
  ["{}", '{"a":1}'],
  ['{"a":[1]}', '{"a":[1,2]}'],
  ['{"a":"1"}', '{"a":1}'],
  ['{"a":"no id"}', `{"a":"${ID}"}`],
  ['{"a":"aXb"}', '{"a":"a.b"}'],
  ['{"a":""}', '{"a":"…"}'],
  ["no JSON", "{}"],
])("JSON %s does not match the page's %s", ([actual = "", shown = ""]) => {
  expect(() => expectOutput(actual, shown, "json output")).toThrow();
});

test("text is compared line by line", () => {
  expect(() => expectOutput("one\ntwo", "one", "text output")).toThrow();
  expect(() => expectOutput("one", "two", "text output")).toThrow();
});
