import type { Propagation } from "../../src/cluster/propagation.ts";
import type { ServerObserver } from "../../src/cluster/server-id.ts";

/** For tests without other nodes: a change need not be propagated. */
export const noNodes: Propagation = {
  begin: async () => ({ history: "", done: Promise.resolve() }),
  confirm: async () => undefined,
  isAcknowledgedByAll: () => true,
};

/** For tests without nodes: any server may answer. */
export const anyServer: ServerObserver = { server: null, requireServer: () => undefined };
