import type { AnswerForm, EncodedAnswers } from "../../domain/verdict.ts";

/** Returns the encoded answers of the cached verdict that a response or decision is about; undefined if it is about none. */
export function answersOf(source: object): EncodedAnswers | undefined {
  return "answers" in source ? (source.answers as EncodedAnswers | undefined) : undefined;
}

/** Encodes a response or decision, that about a cached verdict once: what `encode` returns must not depend on the call. */
export function encodeOnce<T extends object>(
  source: T,
  form: AnswerForm,
  encode: (source: T) => Uint8Array,
): Uint8Array {
  const answers = answersOf(source);
  const known = answers?.answer(form);
  if (known !== undefined) return known;
  const answer = encode(source);
  answers?.keep(form, answer);
  return answer;
}
