import type { FeedEvent } from "../cluster/change-feed.ts";

/** Heard by every node. What the database itself sends there stands in the migrations. */
export const CHANGES_CHANNEL = "keyhold_changes";

/** Heard by one session alone. */
export function sessionChannel(sessionId: string): string {
  return `keyhold_${sessionId}`;
}

export const barrierText = (from: string, number: number) => `barrier ${from} ${number}`;
export const acknowledgementText = (from: string, number: number) => `acknowledgement ${from} ${number}`;
export const echoText = (number: number) => `echo ${number}`;

/** What a notification says. One that is not known comes from a later version: then anything may have changed. */
export function parseFeedEvent(payload: string): FeedEvent {
  const [type = "", first = "", second = ""] = payload.split(" ");
  switch (type) {
    case "key":
      return { type, keyId: first };
    case "digests":
      return { type, digests: first.split(",").map((digest) => Buffer.from(digest, "hex")) };
    case "barrier":
    case "acknowledgement":
      return { type, from: first, number: Number(second) };
    case "echo":
      return { type, number: Number(first) };
    case "signing_keys":
      return { type };
    default:
      return { type: "everything" };
  }
}
