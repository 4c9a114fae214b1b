import { WebhookDeliveryState, type WebhookEndpoint } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";
import { LightBadge } from "../light-badge.tsx";

export function EndpointState({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const t = useTexts(webhooks);
  const color = endpoint.disableReason === "caller" ? "yellow" : "red";
  return (
    <LightBadge color={endpoint.disabled ? color : "green"}>{endpoint.disabled ? t.disabled : t.enabled}</LightBadge>
  );
}

const COLORS: Readonly<Record<WebhookDeliveryState, string>> = {
  [WebhookDeliveryState.UNSPECIFIED]: "gray",
  [WebhookDeliveryState.PENDING]: "yellow",
  [WebhookDeliveryState.SUCCEEDED]: "green",
  [WebhookDeliveryState.FAILED]: "red",
};

export function DeliveryState({ state }: { readonly state: WebhookDeliveryState }) {
  return <LightBadge color={COLORS[state]}>{useTexts(webhooks).deliveryStates[state]}</LightBadge>;
}
