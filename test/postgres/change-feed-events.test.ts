import { expect, test } from "vitest";
import {
  acknowledgementText,
  barrierText,
  CHANGES_CHANNEL,
  echoText,
  parseFeedEvent,
} from "../../src/postgres/cluster/change-feed-events.ts";

const ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

test.each([
  [`key ${ID}`, { type: "key", keyId: ID }],
  ["digests 00ff,0102", { type: "digests", digests: [Buffer.from([0, 255]), Buffer.from([1, 2])] }],
  ["signing_keys", { type: "signing_keys" }],
  ["everything", { type: "everything" }],
  [barrierText(ID, 7), { type: "barrier", from: ID, number: 7 }],
  [acknowledgementText(ID, 8), { type: "acknowledgement", from: ID, number: 8 }],
  [echoText(9), { type: "echo", number: 9 }],
])("%s is parsed", (text, event) => {
  expect(parseFeedEvent(CHANGES_CHANNEL, text)).toEqual(event);
});

test.each(["", "keys", "something new"])("the unknown event %o invalidates everything", (text) => {
  expect(parseFeedEvent(CHANGES_CHANNEL, text)).toEqual({ type: "everything" });
});
