import type { Propagation } from "../../src/cluster/propagation.ts";
import type { ServerObserver } from "../../src/cluster/server-id.ts";

/** A propagation for tests without other nodes: changes are not propagated. */
export const noNodes: Propagation = {
  begin: async (send) => {
    await send(null);
    return { history: "", done: Promise.resolve() };
  },
  confirm: async () => undefined,
  isAcknowledgedByAll: () => true,
};

/** A check for tests without a cluster: accepts the responses of any server. */
export const anyServer: ServerObserver = { server: null, requireServer: () => undefined };
