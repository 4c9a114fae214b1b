import { expect } from "vitest";
import type { Ended } from "./keyhold.ts";
import type { Json } from "./rest.ts";

/** Returns the messages of a log, in order; those of requests with the RPC. */
function messagesOf({ stdout }: Ended): string[] {
  const lines: Json[] = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  return lines.map(({ msg, rpc }) => (rpc === undefined ? msg : `${msg} ${rpc}`));
}

/** Expects `stopped` once, as the last line of a log of level debug, after these messages and the end of the embedded database. */
export function expectStoppedLast(ended: Ended, ...before: string[]): void {
  const messages = messagesOf(ended);
  expect(messages.at(-1)).toBe("stopped");
  const stopping = messages.slice(messages.indexOf("stopping"));
  expect(stopping).toEqual(
    expect.arrayContaining([...before, expect.stringContaining("database system is shut down"), "stopped"]),
  );
  expect(messages.filter((message) => message === "stopped")).toHaveLength(1);
}
