import type { DescMessage, DescMethodUnary } from "@bufbuild/protobuf";
import { expect } from "vitest";
import type { Json } from "../rest.ts";
import type { CallRpc, Protocol, Reply } from "./call.ts";
import { normalForm } from "./normal-form.ts";
import { hasPath } from "./rest.ts";

/** Calls that end in one of `method`, and what that answers: the same over every protocol. */
export interface Scenario {
  readonly method: DescMethodUnary;
  readonly title: string;
  /** The answer in normal form. */
  readonly run: (call: CallRpc) => Promise<Json>;
  readonly expected: Json;
}

export function scenario<O extends DescMessage>(
  method: DescMethodUnary<DescMessage, O>,
  title: string,
  run: (call: CallRpc) => Promise<Reply<O>>,
  expected: Json,
): Scenario {
  return { method, title, run: async (call) => normalForm(method.output, await run(call)), expected };
}

/** Runs a scenario over each protocol that carries its RPC: all must answer the same, and what is expected. */
export async function compareProtocols(
  protocols: readonly Protocol[],
  { method, run, expected }: Pick<Scenario, "method" | "run" | "expected">,
): Promise<void> {
  const carriers = protocols.filter(({ name }) => name !== "REST" || hasPath(method));
  const answers = await Promise.all(carriers.map(async ({ name, call }) => ({ name, answer: await run(call) })));
  expect(answers.length).toBeGreaterThanOrEqual(10);
  const [{ answer: first } = { answer: undefined }] = answers;
  expect(first).toEqual(expected);
  expect(answers).toEqual(carriers.map(({ name }) => ({ name, answer: first })));
}
