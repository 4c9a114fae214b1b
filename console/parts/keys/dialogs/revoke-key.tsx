import { useMutation } from "@connectrpc/connect-query";
import { Checkbox, TextInput } from "@mantine/core";
import { ApiKeysService } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { useRefresh } from "../../../session/refresh.ts";
import { key } from "../../../texts/key.ts";
import { keyPage } from "../../../texts/key-page.ts";
import { useTexts } from "../../../texts/language.tsx";
import { ConfirmDialog } from "../../confirm-dialog.tsx";
import { ReasonSelect } from "../reason-select.tsx";
import type { KeyDialog } from "./dialog.ts";

export function RevokeKey({ apiKey: { keyId, name, scopes }, onClose }: KeyDialog) {
  const t = useTexts(keyPage);
  const names = useTexts(key);
  const refresh = useRefresh();
  const change = useMutation(ApiKeysService.method.revokeApiKey, { onSuccess: onClose, onSettled: () => refresh() });
  const isAdminToken = scopes.some((scope) => scope.startsWith("keyhold:"));
  const revoke = (fields: FormData) =>
    change.mutate({
      keyId,
      reason: Number(fields.get("reason")),
      revocationDescription: String(fields.get("description")),
      includeDescendants: fields.has("descendants"),
    });
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t.revoke}
      description={t.revokeWhat}
      confirmLabel={t.revoke}
      isDangerous
      typedName={name}
      change={change}
      onConfirm={revoke}
    >
      <ReasonSelect />
      <TextInput name="description" label={names.description} maxLength={1000} />
      {isAdminToken && <Checkbox name="descendants" label={t.revokeDescendants} />}
    </ConfirmDialog>
  );
}
