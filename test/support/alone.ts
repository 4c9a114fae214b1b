import type { Propagation } from "../../src/cluster/propagation.ts";
import type { ServerObserver } from "../../src/cluster/server-id.ts";

/** For tests without nodes: nobody has to hear of a change. */
export const noNodes: Propagation = {
  begin: async () => ({ history: "", done: Promise.resolve() }),
  confirm: async () => undefined,
  isAcknowledgedByAll: () => true,
};

/** For tests without nodes: any server may answer. */
export const anyServer: ServerObserver = { server: null, requireServer: () => undefined };
