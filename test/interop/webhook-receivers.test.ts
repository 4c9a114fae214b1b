import { expect, inject, test } from "vitest";
import { checkMessages } from "./webhook-receivers.ts";

test("a receiver that verifies nothing fails every check that requires a rejection, and that of a repeat", async () => {
  const program = `require("node:http").createServer((_, response) => response.end("processed")).listen(process.env.PORT, "127.0.0.1")`;
  const checks = await checkMessages("receiver", `exec "${process.execPath}" -e '${program}'`, inject("testDir"));
  expect(checks.filter(({ holds }) => !holds).map(({ name }) => name)).toEqual([
    "receiver: the same message in a second attempt: 200 already processed",
    "receiver: another secret: 401",
    "receiver: a tampered message: 401",
    "receiver: a message of 10 minutes ago: 401",
    "receiver: a message from 10 minutes ahead: 401",
  ]);
});
