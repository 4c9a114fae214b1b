import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { useEffect } from "react";
import {
  type ListWebhookDeliveriesResponse,
  WebhookDeliveryState,
  type WebhookEndpoint,
  WebhookEndpointsService,
} from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { loadMoreOf } from "../../session/load-more.ts";
import { useCan } from "../../session/permissions.ts";
import { useRefresh } from "../../session/refresh.ts";

const { method } = WebhookEndpointsService;

const PAGE_SIZE = 100;

/** Milliseconds between two requests while a delivery is pending. */
const POLL_INTERVAL = { min: 2_000, max: 30_000 };

/** Reads the deliveries of an endpoint, again while one is pending. */
export function useDeliveries({ endpointId, disabled }: WebhookEndpoint) {
  const refresh = useRefresh();
  const { data, error, hasNextPage, isRefetching, fetchNextPage, refetch } = useInfiniteQuery(
    method.listWebhookDeliveries,
    { endpointId, pageSize: PAGE_SIZE, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      // Only while the page is visible: the default of refetchIntervalInBackground.
      refetchInterval: ({ state }) => !disabled && pollInterval(state.data?.pages ?? []),
    },
  );
  const deliveries = data?.pages.flatMap(({ webhookDeliveries }) => webhookDeliveries);
  const isPending = deliveries?.some(({ state }) => state === WebhookDeliveryState.PENDING);
  // An attempt can disable the endpoint.
  useEffect(() => {
    if (isPending) return () => refresh(method.getWebhookEndpoint);
    return undefined;
  }, [isPending, refresh]);
  const loadMore = loadMoreOf({ hasNextPage, fetchNextPage });
  return { deliveries, error, hasNextPage, loadMore, isRefetching, reload: () => void refetch() };
}

/** Each page is a request. Returns false if nothing is pending; longer than the shortest interval if no attempt is due. */
function pollInterval(pages: readonly ListWebhookDeliveriesResponse[]): number | false {
  const dueTimes = pages
    .flatMap(({ webhookDeliveries }) => webhookDeliveries)
    .filter(({ state }) => state === WebhookDeliveryState.PENDING)
    .map(({ nextAttemptTime }) => (nextAttemptTime === undefined ? 0 : timestampMs(nextAttemptTime)));
  if (dueTimes.length === 0) return false;
  const { min, max } = POLL_INTERVAL;
  return Math.max(Math.min(Math.min(...dueTimes) - Date.now(), max), min * pages.length);
}

/** Delivers again, where the caller may do so. */
export function useRedelivery({ endpointId, disabled }: WebhookEndpoint) {
  const refresh = useRefresh();
  const isPermitted = useCan()(method.redeliverWebhook);
  const { mutate, variables, isPending, error } = useMutation(method.redeliverWebhook, {
    onSuccess: () => refresh(method.listWebhookDeliveries),
  });
  return {
    isOffered: isPermitted && !disabled,
    isPending: (deliveryId: string) => isPending && variables.deliveryId === deliveryId,
    error,
    start: (deliveryId: string) => mutate({ endpointId, deliveryId }),
  };
}

export type Redelivery = ReturnType<typeof useRedelivery>;
