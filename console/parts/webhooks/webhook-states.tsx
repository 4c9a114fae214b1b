import { Badge } from "@mantine/core";
import { WebhookDeliveryState, type WebhookEndpoint } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";

export function EndpointState({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const t = useTexts(webhooks);
  const color = endpoint.disableReason === "caller" ? "yellow" : "red";
  return (
    <Badge color={endpoint.disabled ? color : "green"} variant="light">
      {endpoint.disabled ? t.disabled : t.enabled}
    </Badge>
  );
}

const COLORS: Readonly<Record<WebhookDeliveryState, string>> = {
  [WebhookDeliveryState.UNSPECIFIED]: "gray",
  [WebhookDeliveryState.PENDING]: "yellow",
  [WebhookDeliveryState.SUCCEEDED]: "green",
  [WebhookDeliveryState.FAILED]: "red",
};

export function DeliveryState({ state }: { readonly state: WebhookDeliveryState }) {
  return (
    <Badge color={COLORS[state]} variant="light">
      {useTexts(webhooks).deliveryStates[state]}
    </Badge>
  );
}
