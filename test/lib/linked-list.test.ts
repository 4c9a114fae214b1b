import { expect, test } from "vitest";
import { type Linked, LinkedList } from "../../src/lib/linked-list.ts";

interface Item extends Linked<Item> {
  readonly name: string;
}

function listOf(names: string) {
  const list = new LinkedList<Item>();
  const items = new Map([...names].map((name): [string, Item] => [name, { name, older: undefined, newer: undefined }]));
  for (const item of items.values()) list.add(item);
  const remove = (name: string) => {
    const item = items.get(name);
    if (item !== undefined) list.remove(item);
    return item;
  };
  return { list, remove, names: () => [...list].map(({ name }) => name).join("") };
}

test.each(["a", "b", "c", "ab", "ba", "bc", "cb", "ac", "abc", "cba", "bca"])(
  "after removing %s the others keep their order, and new items come last",
  (removed) => {
    const { list, remove, names } = listOf("abc");
    for (const name of removed) expect(remove(name)).toMatchObject({ older: undefined, newer: undefined });
    const left = [..."abc"].filter((name) => !removed.includes(name)).join("");
    expect(names()).toBe(left);
    expect(list.oldest?.name).toBe(left[0]);
    list.add({ name: "d", older: undefined, newer: undefined });
    expect(names()).toBe(`${left}d`);
  },
);

test("an empty list has no oldest item", () => {
  expect(listOf("").list.oldest).toBeUndefined();
  expect(listOf("").names()).toBe("");
});
