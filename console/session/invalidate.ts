import type { DescMethodUnary } from "@bufbuild/protobuf";
import { createConnectQueryKey } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

/** Returns a function that marks what RPCs have returned, whatever the request, as outdated, and reads again what is shown of it. */
export function useInvalidate(): (...methods: readonly DescMethodUnary[]) => void {
  const client = useQueryClient();
  // Effects depend on it.
  return useCallback(
    (...methods) => {
      for (const schema of methods)
        void client.invalidateQueries({ queryKey: createConnectQueryKey({ schema, cardinality: undefined }) });
    },
    [client],
  );
}
