import { useMutation } from "@connectrpc/connect-query";
import { Button, Group, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type WebhookEndpoint, WebhookEndpointsService } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { useCan } from "../../session/permissions.ts";
import { useRefresh } from "../../session/refresh.ts";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";
import { ConfirmButton } from "../confirm-dialog.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { WebhookFields, webhookFields } from "./webhook-fields.tsx";
import { RotateWebhookSecret, useRefreshEndpoint } from "./webhook-rotation.tsx";

const { method } = WebhookEndpointsService;

interface Props {
  readonly endpoint: WebhookEndpoint;
}

/** What the caller may do with an endpoint. The server sends nothing to one that is disabled. */
export function WebhookActions({ endpoint }: Props) {
  const can = useCan();
  const mayUpdate = can(method.updateWebhookEndpoint);
  return (
    <Group gap="xs" align="start">
      {!endpoint.disabled && can(method.sendTestWebhookEvent) && <TestButton endpoint={endpoint} />}
      {mayUpdate && <EditButton endpoint={endpoint} />}
      {mayUpdate && <DisableButton endpoint={endpoint} />}
      {can(method.rotateWebhookEndpointSecret) && <RotateWebhookSecret endpoint={endpoint} />}
      {!endpoint.disabled && can(method.replayWebhookEvents) && <ReplayButton endpoint={endpoint} />}
      {can(method.deleteWebhookEndpoint) && <DeleteButton endpoint={endpoint} />}
    </Group>
  );
}

function TestButton({ endpoint: { endpointId } }: Props) {
  const t = useTexts(webhooks);
  const test = useMutation(method.sendTestWebhookEvent, { onSuccess: useRefreshEndpoint() });
  return (
    <>
      <Button loading={test.isPending} onClick={() => test.mutate({ endpointId })}>
        {t.sendTest}
      </Button>
      <ErrorAlert error={test.error} />
    </>
  );
}

function EditButton({ endpoint }: Props) {
  const t = useTexts(webhooks);
  const update = useMutation(method.updateWebhookEndpoint, { onSuccess: useRefreshEndpoint() });
  const save = (fields: FormData, onSuccess: () => void) =>
    update.mutate(
      {
        webhookEndpoint: { endpointId: endpoint.endpointId, ...webhookFields(fields) },
        updateMask: { paths: ["url", "event_types", "filter", "description"] },
      },
      { onSuccess },
    );
  return (
    <ConfirmButton
      label={t.edit}
      title={t.editTitle}
      description={t.editDetail}
      confirmLabel={t.editConfirm}
      change={update}
      onConfirm={save}
    >
      <WebhookFields endpoint={endpoint} />
    </ConfirmButton>
  );
}

/** Disables an endpoint, or enables it. */
function DisableButton({ endpoint: { endpointId, disabled } }: Props) {
  const t = useTexts(webhooks);
  const update = useMutation(method.updateWebhookEndpoint, { onSuccess: useRefreshEndpoint() });
  const change = { webhookEndpoint: { endpointId, disabled: !disabled }, updateMask: { paths: ["disabled"] } };
  const label = disabled ? t.enable : t.disable;
  return (
    <ConfirmButton
      label={label}
      title={disabled ? t.enableTitle : t.disableTitle}
      description={disabled ? t.enableDetail : t.disableDetail}
      confirmLabel={label}
      isDangerous={!disabled}
      change={update}
      onConfirm={(_, onSuccess) => update.mutate(change, { onSuccess })}
    />
  );
}

function ReplayButton({ endpoint: { endpointId } }: Props) {
  const t = useTexts(webhooks);
  const replay = useMutation(method.replayWebhookEvents, { onSuccess: useRefreshEndpoint() });
  return (
    <ConfirmButton
      label={t.replay}
      title={t.replay}
      description={t.replayDetail}
      confirmLabel={t.replayConfirm}
      change={replay}
      onConfirm={(fields, onSuccess) =>
        replay.mutate({ endpointId, seq: BigInt(String(fields.get("seq"))) }, { onSuccess })
      }
    >
      {/* BigInt takes nothing but digits. */}
      <TextInput name="seq" label={t.seq} inputMode="numeric" pattern="[0-9]{1,18}" required data-autofocus />
    </ConfirmButton>
  );
}

function DeleteButton({ endpoint: { endpointId } }: Props) {
  const t = useTexts(webhooks);
  const refresh = useRefresh();
  const navigate = useNavigate();
  const deletion = useMutation(method.deleteWebhookEndpoint, {
    onSuccess: async () => {
      await navigate({ to: "/webhooks", replace: true });
      refresh(method.listWebhookEndpoints);
    },
  });
  return (
    <ConfirmButton
      label={t.delete}
      title={t.deleteTitle}
      description={t.deleteDetail}
      confirmLabel={t.delete}
      isDangerous
      typedName={endpointId}
      change={deletion}
      onConfirm={() => deletion.mutate({ endpointId })}
    />
  );
}
