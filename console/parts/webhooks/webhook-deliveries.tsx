import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import {
  type WebhookDelivery,
  WebhookDeliveryState,
  type WebhookEndpoint,
} from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { common } from "../../texts/common.ts";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";
import { type Column, DataTable } from "../data-table.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { LinkAnchor } from "../links.tsx";
import { PageLoader } from "../page-loader.tsx";
import { Time } from "../time.tsx";
import { type Redelivery, useDeliveries, useRedelivery } from "./use-webhook-deliveries.ts";
import { WebhookDeliveryDialog } from "./webhook-delivery-dialog.tsx";
import { DeliveryState } from "./webhook-states.tsx";

const route = getRouteApi("/webhooks/$endpointId");

/** The values of the search parameter `state`. */
const STATES = {
  pending: WebhookDeliveryState.PENDING,
  succeeded: WebhookDeliveryState.SUCCEEDED,
  failed: WebhookDeliveryState.FAILED,
};

/** The deliveries of an endpoint, newest first. The server has no filter for them: the filter is applied to those that are loaded. */
export function WebhookDeliveries({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const t = useTexts(webhooks);
  const { loadMore: more } = useTexts(common);
  const { state = [], delivery: [openId] = [] } = route.useSearch();
  const navigate = route.useNavigate();
  const { deliveries, error, hasNextPage, loadMore, isRefetching, reload } = useDeliveries(endpoint);
  const redelivery = useRedelivery(endpoint);
  const columns = useColumns(redelivery);
  const isShown = (one: WebhookDelivery) =>
    state.length === 0 || Object.entries(STATES).some(([name, value]) => value === one.state && state.includes(name));
  const rows = deliveries?.filter(isShown) ?? [];
  return (
    <Stack>
      <Title order={2} size="h3">
        {t.deliveries}
      </Title>
      <Group justify="space-between">
        <StateFilter state={state} />
        <Button size="compact-sm" variant="default" loading={isRefetching} onClick={reload}>
          {t.refresh}
        </Button>
      </Group>
      <ErrorAlert error={error} onRetry={reload} />
      <ErrorAlert error={redelivery.error} />
      {deliveries === undefined ? (
        error === null && <PageLoader />
      ) : (
        <>
          <Text role="status" size="sm" c="dimmed">
            {t.shown(rows.length, deliveries.length, !hasNextPage)}
          </Text>
          <DataTable
            label={t.deliveries}
            columns={columns}
            rows={rows}
            idOf={({ deliveryId }) => deliveryId}
            onEnd={loadMore}
          />
          {loadMore !== undefined && (
            <Button variant="default" onClick={loadMore} style={{ alignSelf: "center" }}>
              {more}
            </Button>
          )}
        </>
      )}
      <WebhookDeliveryDialog
        id={openId}
        delivery={deliveries?.find(({ deliveryId }) => deliveryId === openId)}
        isLoading={deliveries === undefined}
        redelivery={redelivery}
        onClose={() => void navigate({ search: { state } })}
      />
    </Stack>
  );
}

function useColumns({ isOffered, isPending, start }: Redelivery): readonly Column<WebhookDelivery>[] {
  const t = useTexts(webhooks);
  const { state } = route.useSearch();
  const columns: Column<WebhookDelivery>[] = [
    {
      header: t.event,
      cell: ({ deliveryId, eventType }) => (
        <LinkAnchor to="." search={{ ...(state !== undefined && { state }), delivery: [deliveryId] }}>
          {eventType}
        </LinkAnchor>
      ),
    },
    { header: t.state, cell: (delivery) => <DeliveryState state={delivery.state} /> },
    {
      header: t.lastAttempt,
      cell: ({ attempts: [last] }) => last && (last.error || t.ok),
      isSecondary: true,
    },
    { header: t.created, cell: ({ createTime }) => createTime && <Time date={createTime} />, isSecondary: true },
  ];
  if (isOffered)
    columns.push({
      header: t.actions,
      cell: ({ deliveryId, eventType }) => (
        <Button
          size="compact-sm"
          variant="default"
          loading={isPending(deliveryId)}
          onClick={() => start(deliveryId)}
          aria-label={t.redeliverNamed(eventType, deliveryId)}
        >
          {t.redeliver}
        </Button>
      ),
    });
  return columns;
}

function StateFilter({ state }: { readonly state: readonly string[] }) {
  const t = useTexts(webhooks);
  const navigate = route.useNavigate();
  return (
    <Group gap="xs" role="group" aria-label={t.filterByState}>
      {Object.entries(STATES).map(([name, value]) => (
        <Button
          key={name}
          size="compact-sm"
          variant="default"
          aria-pressed={state.includes(name)}
          onClick={() => {
            const next = state.includes(name) ? state.filter((one) => one !== name) : [...state, name];
            void navigate({ search: { state: next } });
          }}
        >
          {t.deliveryStates[value]}
        </Button>
      ))}
    </Group>
  );
}
