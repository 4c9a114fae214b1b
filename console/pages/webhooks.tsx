import { useQuery } from "@connectrpc/connect-query";
import { Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { type WebhookEndpoint, WebhookEndpointsService } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { ConfirmButton } from "../parts/confirm-dialog.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { LinkAnchor } from "../parts/links.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { Time } from "../parts/time.tsx";
import { WebhookFields, webhookFields } from "../parts/webhooks/webhook-fields.tsx";
import { WebhookSecret } from "../parts/webhooks/webhook-secret.tsx";
import { DeliveryState, EndpointState } from "../parts/webhooks/webhook-states.tsx";
import { useCan } from "../session/permissions.ts";
import { useRefresh } from "../session/refresh.ts";
import { useSecretCall } from "../session/secret-call.ts";
import { useLag } from "../session/webhook-lag.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { webhooks } from "../texts/webhooks.ts";

const { method } = WebhookEndpointsService;

/** Lists the endpoints; there are at most 100. */
export function WebhooksPage() {
  const names = useTexts(common).pages;
  const can = useCan();
  const { data, error, refetch } = useQuery(method.listWebhookEndpoints);
  const columns = useColumns();
  return (
    <Page title={names.webhooks} actions={can(method.createWebhookEndpoint) && <CreateButton />}>
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {data === undefined ? (
        error === null && <PageLoader />
      ) : (
        <DataTable
          label={names.webhooks}
          columns={columns}
          rows={data.webhookEndpoints}
          idOf={({ endpointId }) => endpointId}
        />
      )}
    </Page>
  );
}

function useColumns(): readonly Column<WebhookEndpoint>[] {
  const t = useTexts(webhooks);
  const lagOf = useLag();
  const can = useCan();
  const columns: Column<WebhookEndpoint>[] = [
    {
      header: t.endpoint,
      cell: ({ endpointId, url }) => (
        <>
          <LinkAnchor className="breakable" to="/webhooks/$endpointId" params={{ endpointId }}>
            {endpointId}
          </LinkAnchor>
          <Text className="breakable" size="sm" c="dimmed">
            {url}
          </Text>
        </>
      ),
    },
    { header: t.state, cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
    {
      header: t.eventTypes,
      cell: ({ eventTypes }) => (eventTypes.includes("*") ? t.anyEventShort : eventTypes.join(", ")),
      isSecondary: true,
    },
  ];
  if (can(method.listWebhookDeliveries))
    columns.push({
      header: t.lastDelivery,
      cell: ({ endpointId }) => <LastDelivery endpointId={endpointId} />,
      isSecondary: true,
    });
  columns.push({
    header: t.lag,
    cell: (endpoint) => {
      const lag = lagOf(endpoint);
      return lag === undefined ? "–" : t.behind(lag);
    },
    isSecondary: true,
  });
  return columns;
}

/** Rows outside of the window are not in the document, and read nothing. */
function LastDelivery({ endpointId }: { readonly endpointId: string }) {
  const { never } = useTexts(common);
  const { data } = useQuery(method.listWebhookDeliveries, { endpointId, pageSize: 1 });
  if (data === undefined) return null;
  const [delivery] = data.webhookDeliveries;
  if (delivery === undefined) return never;
  const { state, createTime } = delivery;
  return (
    <Group gap="xs">
      <DeliveryState state={state} />
      {createTime && <Time date={createTime} />}
    </Group>
  );
}

function CreateButton() {
  const t = useTexts(webhooks);
  const refresh = useRefresh();
  const [secret, setSecret] = useState<string | null>(null);
  const creation = useSecretCall(method.createWebhookEndpoint);
  const create = async (fields: FormData) => {
    const endpointId = String(fields.get("endpointId")).trim();
    const created = await creation.call({ endpointId, ...webhookFields(fields) });
    if (created === undefined) return;
    setSecret(created.secret);
    refresh(method.listWebhookEndpoints);
  };
  return (
    <ConfirmButton
      label={t.create}
      button={{ variant: "filled" }}
      title={t.create}
      description={t.createDetail}
      confirmLabel={t.createConfirm}
      change={creation}
      onConfirm={(fields) => void create(fields)}
      result={secret === null ? null : <WebhookSecret secret={secret} />}
      onClose={() => setSecret(null)}
    >
      <TextInput name="endpointId" label={t.id} description={t.idHint} required data-autofocus />
      <WebhookFields />
    </ConfirmButton>
  );
}
