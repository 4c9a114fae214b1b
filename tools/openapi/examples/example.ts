import type { JsonValue } from "@bufbuild/protobuf";

/** A request with the answer it gets. Tests send it to a live server. */
export interface Example {
  readonly summary: string;
  /** Of path and query, by name. */
  readonly parameters?: Readonly<Record<string, string | number>>;
  readonly body?: JsonValue;
  /** The HTTP status of the answer. */
  readonly status: number;
  readonly response: JsonValue;
}

/** By names that are the same in request and response. */
export type Examples = Readonly<Record<string, Example>>;
