import type { DescMessage, DescMethodUnary } from "@bufbuild/protobuf";
import { expect } from "vitest";
import type { Json } from "../rest.ts";
import type { CallRpc, Protocol, Reply } from "./call.ts";
import { normalForm } from "./normal-form.ts";
import { hasPath } from "./rest.ts";

/** Calls that end with a call of `method`, and its response, which must be equal over every protocol. */
export interface Scenario {
  readonly method: DescMethodUnary;
  readonly title: string;
  /** The response in normal form. */
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

/**
 * Runs a scenario over each protocol that carries its RPC, `atOnce` of them concurrently: all responses must be equal to each other and
 * to the expected one. More than nine concurrent batches of a thousand would be rejected as OVERLOADED.
 */
export async function compareProtocols(
  protocols: readonly Protocol[],
  { method, run, expected }: Pick<Scenario, "method" | "run" | "expected">,
  atOnce = protocols.length,
): Promise<void> {
  const carriers = protocols.filter(({ name }) => name !== "REST" || hasPath(method));
  const answers: { name: string; answer: Json }[] = [];
  for (let i = 0; i < carriers.length; i += atOnce) {
    const some = carriers.slice(i, i + atOnce);
    answers.push(...(await Promise.all(some.map(async ({ name, call }) => ({ name, answer: await run(call) })))));
  }
  expect(answers.length).toBeGreaterThanOrEqual(10);
  const [{ answer: first } = { answer: undefined }] = answers;
  expect(first).toEqual(expected);
  expect(answers).toEqual(carriers.map(({ name }) => ({ name, answer: first })));
}
