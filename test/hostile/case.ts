import type { Seeded } from "../support/seeded.ts";
import type { CaseContext } from "./case-context.ts";
import type { Target } from "./target.ts";

/** One input, and the conditions on the responses to it. */
export interface HostileCase {
  /** Description for the report. */
  readonly kind: string;
  /** Maximum CPU time of one tick in milliseconds, if the input is more than one request. */
  readonly maxTick?: number | undefined;
  /** Returns what is sent to this server as text that shows every byte except those of the admin token. */
  description(target: Target): string;
  /** Sends the input and returns the problems of the responses. */
  run(target: Target): Promise<readonly string[]>;
}

/** A family of inputs. Equal random choices yield equal cases. */
export interface Family {
  readonly name: string;
  /** Number of concurrent cases; expensive ones run alone. */
  readonly parallel: number;
  /** Whether each case is measured alone, even if it is not suspicious. */
  readonly measuresEach?: boolean;
  /** Share of the time, relative to the other families. */
  readonly weight: number;
  generate(random: Seeded, context: CaseContext): HostileCase;
}

/** Returns bytes as text in which every byte is visible; the middle of a long text is omitted. */
export function escaped(bytes: Uint8Array, limit = 4_000): string {
  const text = Buffer.from(bytes)
    .toString("latin1")
    .replaceAll("\\", "\\\\")
    .replaceAll("\r", "\\r")
    .replaceAll("\n", "\\n")
    .replaceAll(/[^ -~]/g, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
  if (text.length <= limit) return text;
  return `${text.slice(0, limit / 2)} [… ${text.length - limit} characters …] ${text.slice(-limit / 2)}`;
}
