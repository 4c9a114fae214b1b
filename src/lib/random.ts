import { randomBytes } from "node:crypto";

/** Randomness, as it comes in from outside: `size` unpredictable bytes. */
export interface Random {
  bytes(size: number): Uint8Array;
}

export const systemRandom: Random = { bytes: (size) => randomBytes(size) };
