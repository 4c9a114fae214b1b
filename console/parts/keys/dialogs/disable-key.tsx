import { useMutation } from "@connectrpc/connect-query";
import { TextInput } from "@mantine/core";
import { ApiKeysService } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { useRefresh } from "../../../session/refresh.ts";
import { key } from "../../../texts/key.ts";
import { keyPage } from "../../../texts/key-page.ts";
import { useTexts } from "../../../texts/language.tsx";
import { ConfirmDialog } from "../../confirm-dialog.tsx";
import type { KeyDialog } from "./dialog.ts";

export function DisableKey({ apiKey: { keyId }, onClose }: KeyDialog) {
  const t = useTexts(keyPage);
  const names = useTexts(key);
  const refresh = useRefresh();
  const change = useMutation(ApiKeysService.method.disableApiKey, { onSuccess: onClose, onSettled: () => refresh() });
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t.disable}
      description={t.disableWhat}
      confirmLabel={t.disable}
      change={change}
      onConfirm={(fields) => change.mutate({ keyId, reason: String(fields.get("reason")) })}
    >
      <TextInput name="reason" label={names.reason} maxLength={1000} data-autofocus />
    </ConfirmDialog>
  );
}

export function EnableKey({ apiKey: { keyId }, onClose }: KeyDialog) {
  const t = useTexts(keyPage);
  const refresh = useRefresh();
  const change = useMutation(ApiKeysService.method.enableApiKey, { onSuccess: onClose, onSettled: () => refresh() });
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t.enable}
      description={t.enableWhat}
      confirmLabel={t.enable}
      change={change}
      onConfirm={() => change.mutate({ keyId })}
    />
  );
}
