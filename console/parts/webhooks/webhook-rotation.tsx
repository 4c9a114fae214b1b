import { TextInput } from "@mantine/core";
import { useState } from "react";
import { type WebhookEndpoint, WebhookEndpointsService } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { useRefresh } from "../../session/refresh.ts";
import { useSecretCall } from "../../session/secret-call.ts";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";
import { ConfirmButton } from "../confirm-dialog.tsx";
import { WebhookSecret } from "./webhook-secret.tsx";

const { method } = WebhookEndpointsService;

/** Returns a function that reads again what a change of an endpoint affects. */
export function useRefreshEndpoint() {
  const refresh = useRefresh();
  return () => refresh(method.getWebhookEndpoint, method.listWebhookEndpoints, method.listWebhookDeliveries);
}

/** A button that rotates the secret of an endpoint, and its dialog, which shows the new one this once. */
export function RotateWebhookSecret({ endpoint: { endpointId } }: { readonly endpoint: WebhookEndpoint }) {
  const t = useTexts(webhooks);
  const refresh = useRefreshEndpoint();
  const [secret, setSecret] = useState<string | null>(null);
  const rotation = useSecretCall(method.rotateWebhookEndpointSecret);
  const rotate = async (fields: FormData) => {
    const gracePeriod = String(fields.get("grace")).trim();
    const rotated = await rotation.call({ endpointId, ...(gracePeriod !== "" && { gracePeriod }) });
    if (rotated === undefined) return;
    setSecret(rotated.secret);
    refresh();
  };
  return (
    <ConfirmButton
      label={t.rotate}
      title={t.rotate}
      description={t.rotateDetail}
      confirmLabel={t.rotateConfirm}
      change={rotation}
      onConfirm={(fields) => void rotate(fields)}
      result={secret === null ? null : <WebhookSecret secret={secret} />}
      onClose={() => setSecret(null)}
    >
      <TextInput name="grace" label={t.grace} description={t.graceHint} defaultValue="24h" data-autofocus />
    </ConfirmButton>
  );
}
