import { expect, test } from "vitest";
import { parseOrder } from "../../src/keys/list-order.ts";

test.each([
  ["", { field: "create_time", isDescending: true }],
  ["  ", { field: "create_time", isDescending: true }],
  ["create_time", { field: "create_time", isDescending: false }],
  ["create_time desc", { field: "create_time", isDescending: true }],
  ["expireTime", { field: "expire_time", isDescending: false }],
  ["  last_used_time   desc ", { field: "last_used_time", isDescending: true }],
  ["name", { field: "name", isDescending: false }],
])("%j is %o", (text, order) => {
  expect(parseOrder(text)).toEqual(order);
});

const ALLOWED = 'create_time, expire_time, last_used_time, name; to reverse the order, add "desc" after the field';

test.each([
  ["id", `unknown field "id"; allowed: ${ALLOWED}`],
  ["expires_at", `unknown field "expires_at"; allowed: ${ALLOWED}; did you mean expire_time?`],
  ["update_time desc", expect.stringContaining('unknown field "update_time"; allowed: create_time, ')],
  ["Name", expect.stringContaining('unknown field "Name"')],
  ["desc", expect.stringContaining('unknown field "desc"')],
  ["constructor", expect.stringContaining("unknown field")],
  ["kh_v1_0123456789abcdef", expect.stringContaining('unknown field "kh_v1_…"; allowed: create_time, ')],
  ["expire_time asc", 'unexpected text after expire_time; allowed: "desc"'],
  ["expire_time DESC", 'unexpected text after expire_time; allowed: "desc"'],
  ["expire_time desc desc", 'unexpected text after expire_time; allowed: "desc"'],
  ["expire_time, name", `only one field is allowed; use one of ${ALLOWED}`],
  ["name,", `only one field is allowed; use one of ${ALLOWED}`],
])("%j is rejected", (text, description) => {
  expect(() => parseOrder(text)).toThrow(
    expect.objectContaining({
      code: "INVALID_ARGUMENT",
      violations: [{ field: "order_by", description, reason: "INVALID_FORMAT" }],
    }),
  );
});
