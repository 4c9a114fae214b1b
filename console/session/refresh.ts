import type { DescMethodUnary } from "@bufbuild/protobuf";
import { createConnectQueryKey } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

/**
 * Returns a function that marks what these RPCs have returned, whatever the request, as outdated, and reads again what is shown of it. Without
 * RPCs: what all have returned, after a change that pages of several subjects show.
 */
export function useRefresh(): (...methods: readonly DescMethodUnary[]) => void {
  const client = useQueryClient();
  // Effects depend on it.
  return useCallback(
    (...methods) => {
      if (methods.length === 0) void client.invalidateQueries();
      for (const schema of methods)
        void client.invalidateQueries({ queryKey: createConnectQueryKey({ schema, cardinality: undefined }) });
    },
    [client],
  );
}
