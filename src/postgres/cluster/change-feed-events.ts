import type { FeedEvent } from "../../cluster/change-feed.ts";

/** Channel that every node listens to. The triggers in the migrations send to it. */
export const CHANGES_CHANNEL = "keyhold_changes";

/** The channel of the sequencer (`audit_sequence`, migration 0026). Not that of changes, whose unknown texts make a node drop its cache. */
export const AUDIT_CHANNEL = "keyhold_audit";

/** Returns the channel that one session listens to. */
export function sessionChannel(sessionId: string): string {
  return `keyhold_${sessionId}`;
}

export const barrierText = (from: string, number: number) => `barrier ${from} ${number}`;
export const acknowledgementText = (from: string, number: number) => `acknowledgement ${from} ${number}`;
export const echoText = (number: number) => `echo ${number}`;

/** Parses a notification. An unknown one was sent by a later version and means that anything may have changed. */
export function parseFeedEvent(channel: string, payload: string): FeedEvent {
  const [type = "", first = "", second = ""] = payload.split(" ");
  if (channel === AUDIT_CHANNEL) return { type: "audit_log", size: Number(type), salt: first };
  switch (type) {
    case "key":
      return { type, keyId: first };
    case "actor":
      return { type, actorId: Buffer.from(first, "hex").toString() };
    case "digests":
      return { type, digests: first.split(",").map((digest) => Buffer.from(digest, "hex")) };
    case "barrier":
    case "acknowledgement":
      return { type, from: first, number: Number(second) };
    case "echo":
      return { type, number: Number(first) };
    case "signing_keys":
    case "hash_schemes":
      return { type };
    default:
      return { type: "everything" };
  }
}
