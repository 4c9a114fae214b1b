import { expect } from "vitest";
import type { Json } from "../../support/rest.ts";
import type { Seen } from "./observe.ts";

/** The response that the client received, and the log lines of a request. */
export interface Outcome {
  readonly seen: readonly Seen[];
  readonly log: readonly Json[];
}

export interface Difference {
  readonly title: RegExp;
  readonly reason: string;
  /** What each outcome must match. */
  readonly expected: Readonly<Record<"ours" | "theirs", object>>;
}

const HAS = (name: string) => expect.objectContaining({ [name]: expect.any(String) });

/** All allowed differences and their reasons. */
export const DIFFERENCES: readonly Difference[] = [
  {
    title: /^connect .*: accepting ".*(gzip|br).*", credential "(large|error with a long message)"$/,
    reason: "the fast path does not compress its responses",
    expected: {
      ours: { seen: expect.not.arrayContaining([expect.objectContaining({ headers: HAS("content-encoding") })]) },
      theirs: { seen: expect.arrayContaining([expect.objectContaining({ headers: HAS("content-encoding") })]) },
    },
  },
  {
    title: /^grpc .*: accepting ".*(gzip|br).*"/,
    reason: "the fast path does not compress its responses",
    expected: {
      ours: { seen: [expect.not.objectContaining({ headers: HAS("grpc-encoding") })] },
      theirs: { seen: [expect.objectContaining({ headers: HAS("grpc-encoding") })] },
    },
  },
  {
    title: /^rest json .*: credential "no message"$/,
    reason: "a response that cannot be encoded is a server error: the fast path logs its RPC",
    expected: {
      ours: { log: [expect.objectContaining({ msg: "fault", rpc: expect.any(String) }), expect.anything()] },
      theirs: { log: [expect.objectContaining({ msg: "a request failed" }), expect.anything()] },
    },
  },
  {
    title: /json .*: credential "no message"$/,
    reason: "a response that cannot be encoded is a server error: the fast path logs it and hides its cause",
    expected: {
      ours: { log: [expect.objectContaining({ msg: "fault" }), expect.objectContaining({ code: "INTERNAL" })] },
      theirs: { log: [expect.objectContaining({ msg: "request" })] },
    },
  },
];
