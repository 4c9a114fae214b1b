import { useMutation } from "@connectrpc/connect-query";
import { useNavigate } from "@tanstack/react-router";
import { ImportedApiKeysService } from "../../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { useRefresh } from "../../../session/refresh.ts";
import { keyPage } from "../../../texts/key-page.ts";
import { useTexts } from "../../../texts/language.tsx";
import { ConfirmDialog } from "../../confirm-dialog.tsx";
import type { KeyDialog } from "./dialog.ts";

export function DeleteKey({ apiKey: { keyId, name }, onClose }: KeyDialog) {
  const t = useTexts(keyPage);
  const navigate = useNavigate();
  const refresh = useRefresh();
  const change = useMutation(ImportedApiKeysService.method.deleteImportedApiKey, {
    onSuccess: async () => {
      await navigate({ to: "/keys", replace: true });
      refresh();
    },
  });
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t.delete}
      description={t.deleteWhat}
      confirmLabel={t.delete}
      isDangerous
      typedName={name}
      change={change}
      onConfirm={() => change.mutate({ keyId })}
    />
  );
}
