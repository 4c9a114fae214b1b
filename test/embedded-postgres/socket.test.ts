import fc from "fast-check";
import { expect, test } from "vitest";
import { socketUrl } from "../../src/embedded-postgres/socket.ts";
import { socketOptions } from "../support/socket-options.ts";

test("the client finds the folder in the URL, for any name", () => {
  const folders = fc
    .string({ unit: "grapheme", minLength: 1 })
    .filter((name) => !/[\0/]/.test(name) && !/^\.\.?$/.test(name));
  fc.assert(
    fc.property(folders, (name) => {
      const url = socketUrl(`/data/${name}`, "keyhold", "keyhold");
      expect(socketOptions(url).path).toBe(`/data/${name}/.s.PGSQL.5432`);
      expect(new URL(url)).toMatchObject({ username: "keyhold", pathname: "/keyhold" });
    }),
  );
});

test("a URL with a host name needs no further options", () => {
  expect(socketOptions("postgres://user:secret@db.example:5433/keys?sslmode=require")).toEqual({});
});
