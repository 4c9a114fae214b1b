import { Barriers } from "../../src/cluster/barriers.ts";
import { Lease } from "../../src/cluster/lease.ts";
import { GatheredReads } from "../../src/verify/gathered-reads.ts";
import type { FaultName } from "./faults.ts";

/** What can be taken out of the product, to see that the checker finds what then goes wrong. */
export type Sabotage = "lease" | "fence" | "wait";

/** Replaces a method of the product in this process, before the product starts: it has no switch for it itself. */
export const SABOTAGES: Readonly<Record<Sabotage, () => void>> = {
  /** A lease is fresh for ever. */
  lease: () => {
    Object.defineProperty(Lease.prototype, "isFresh", { get: () => true });
  },
  /** What a read found is kept, whatever was changed while it was under way. */
  fence: () => {
    GatheredReads.prototype.invalidate = () => {};
    GatheredReads.prototype.invalidateAll = () => {};
  },
  /** A change is acknowledged before the other nodes have heard of it. */
  wait: () => {
    Barriers.prototype.settle = () => Promise.resolve();
  },
};

/** Faults under which a part of the argument must be missed when it is taken away. */
export const EXPOSING: Readonly<Record<Sabotage, readonly FaultName[]>> = {
  lease: ["node stopped"],
  fence: ["network slow"],
  wait: ["network slow"],
};
