import { useQuery } from "@connectrpc/connect-query";
import { Code, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type WebhookEndpoint, WebhookEndpointsService } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { Fact, Facts } from "../parts/facts.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { Time } from "../parts/time.tsx";
import { WebhookActions } from "../parts/webhooks/webhook-actions.tsx";
import { WebhookDeliveries } from "../parts/webhooks/webhook-deliveries.tsx";
import { EndpointState } from "../parts/webhooks/webhook-states.tsx";
import { useCan } from "../session/permissions.ts";
import { useLag } from "../session/webhook-lag.ts";
import { useLanguage, useTexts } from "../texts/language.tsx";
import { webhooks } from "../texts/webhooks.ts";

const { method } = WebhookEndpointsService;

const route = getRouteApi("/webhooks/$endpointId");

/** Shows an endpoint, what can be done with it, and its deliveries. */
export function WebhookEndpointPage() {
  const { endpointId } = route.useParams();
  const can = useCan();
  const { data: endpoint, error, refetch } = useQuery(method.getWebhookEndpoint, { endpointId });
  return (
    <Page title={endpointId}>
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {endpoint === undefined ? (
        error === null && <PageLoader />
      ) : (
        <>
          <WebhookActions endpoint={endpoint} />
          <EndpointFacts endpoint={endpoint} />
          {can(method.listWebhookDeliveries) && <WebhookDeliveries endpoint={endpoint} />}
        </>
      )}
    </Page>
  );
}

function EndpointFacts({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const t = useTexts(webhooks);
  const { language } = useLanguage();
  const lag = useLag()(endpoint);
  const { url, eventTypes, filter, description, createdBy, nextSeq } = endpoint;
  const { createTime, updateTime, secretRotateTime, oldSecretExpireTime } = endpoint;
  const facts: readonly (readonly [string, ReactNode])[] = [
    [t.state, <State key="state" endpoint={endpoint} />],
    [t.url, url],
    [t.eventTypes, eventTypes.includes("*") ? t.anyEvent : eventTypes.join(", ")],
    [t.filter, filter && <Code>{filter}</Code>],
    [t.description, description],
    [t.nextSeq, nextSeq.toLocaleString(language)],
    [t.lag, lag !== undefined && t.behind(lag)],
    [t.created, createTime && <Time date={createTime} />],
    [t.createdBy, createdBy],
    [t.updated, updateTime && <Time date={updateTime} />],
    [t.secretRotated, secretRotateTime && <Time date={secretRotateTime} />],
    [t.oldSecretUntil, oldSecretExpireTime && <Time date={oldSecretExpireTime} />],
  ];
  return (
    <Facts>
      {facts.map(([name, value]) => (
        <Fact key={name} name={name}>
          {value}
        </Fact>
      ))}
    </Facts>
  );
}

function State({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const t = useTexts(webhooks);
  const { disableReason, disableTime } = endpoint;
  const reasons: Readonly<Record<string, string>> = t.disableReasons;
  return (
    <>
      <EndpointState endpoint={endpoint} />
      {endpoint.disabled && (
        <Text size="sm">
          {disableTime && <Time date={disableTime} />}, {reasons[disableReason] ?? disableReason}
        </Text>
      )}
    </>
  );
}
