import { Code, ConnectError } from "@connectrpc/connect";
import { createQueryOptions } from "@connectrpc/connect-query";
import { hashKey, MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { CallersService } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { hasFailedLate, transport } from "./transport.ts";

const MAX_RETRIES = 2;

const whoAmI = createQueryOptions(CallersService.method.whoAmI, {}, { transport });
const whoAmIHash = hashKey(whoAmI.queryKey);

/** A call says that the session has ended: reads again who the caller is, and the page shows why. */
function onError(error: Error): void {
  if (ConnectError.from(error).code === Code.Unauthenticated) void refreshSession();
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryHash }) => {
      if (queryHash !== whoAmIHash) onError(error);
    },
  }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      retry: (failures, error) =>
        failures < MAX_RETRIES && ConnectError.from(error).code === Code.Unavailable && !hasFailedLate(error),
      staleTime: 5_000,
      refetchOnWindowFocus: false,
    },
    mutations: { retry: false },
  },
});

export function loadSession(): Promise<void> {
  return queryClient.prefetchQuery(whoAmI);
}

export function refreshSession(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: whoAmI.queryKey });
}
