import type { Seeded } from "../support/seeded.ts";
import type { Target } from "./target.ts";
import type { World } from "./world.ts";

/** One input, and what is to hold of the answers to it. */
export interface HostileCase {
  /** What it is, for the report. */
  readonly kind: string;
  /** Milliseconds of CPU time that it may hold the event loop, if it is more than one request. */
  readonly maxTurn?: number | undefined;
  /** What is sent to this server, as text that shows every byte but those of the admin token. */
  shown(target: Target): string;
  /** Sends it and returns what is wrong with the answers. */
  play(target: Target): Promise<readonly string[]>;
}

/** A family of inputs. The same choices give the same case. */
export interface Family {
  readonly name: string;
  /** How many cases run at once: those that cost the server much run alone. */
  readonly parallel: number;
  /** Whether each case is measured alone, even if it is not suspicious. */
  readonly measuresEach?: boolean;
  /** Share of the time, relative to the other families. */
  readonly weight: number;
  generate(random: Seeded, world: World): HostileCase;
}

/** Bytes as text in which every byte is visible; the middle of a long one is left out. */
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
