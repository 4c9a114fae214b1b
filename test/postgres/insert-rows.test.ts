import { expect, test } from "vitest";
import { toNewRows } from "../../src/postgres/keys/insert-rows.ts";
import { newKey } from "./new-keys.ts";

test("each row has the times of its own key, in any order", () => {
  const times = [5, 5, 7, 5, 0, 7, 7].map((milliseconds) => new Date(Date.UTC(2026, 0, 2, 3, 4, 5, milliseconds)));
  const keys = times.map((time) => {
    const made = newKey();
    return { ...made, key: { ...made.key, createTime: time, updateTime: time } };
  });
  const rows = new Map(toNewRows(keys).map((row) => [row.key_id, row]));
  for (const { key } of keys) {
    const row = rows.get(key.keyId);
    const expected = key.createTime.toISOString();
    expect([row?.create_time, row?.update_time]).toEqual([expected, expected]);
  }
});
