import { useMutation } from "@connectrpc/connect-query";
import { NativeSelect } from "@mantine/core";
import { useState } from "react";
import { IssuedApiKeysService } from "../../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { useRefresh } from "../../../session/refresh.ts";
import { useSecretCall } from "../../../session/secret-call.ts";
import { keyPage } from "../../../texts/key-page.ts";
import { useTexts } from "../../../texts/language.tsx";
import { ConfirmDialog } from "../../confirm-dialog.tsx";
import { NewSecretDialog } from "../new-secret-dialog.tsx";
import type { KeyDialog } from "./dialog.ts";

/** Replaces the secret of a key, and shows the new one this once. */
export function RotateKey({ apiKey: { keyId }, onClose }: KeyDialog) {
  const t = useTexts(keyPage);
  const refresh = useRefresh();
  const [secret, setSecret] = useState<string | null>(null);
  const { call, ...change } = useSecretCall(IssuedApiKeysService.method.rotateIssuedApiKey);
  const rotate = async (fields: FormData) => {
    const gracePeriod = String(fields.get("grace"));
    const response = await call({ keyId, ...(gracePeriod !== "" && { gracePeriod }) });
    if (response !== undefined) setSecret(response.secret);
    refresh();
  };
  if (secret !== null) return <NewSecretDialog title={t.rotated} secret={secret} onClose={onClose} />;
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t.rotate}
      description={t.rotateWhat}
      confirmLabel={t.rotate}
      change={change}
      onConfirm={(fields) => void rotate(fields)}
    >
      <NativeSelect
        name="grace"
        label={t.gracePeriod}
        defaultValue="24h"
        data={[
          { value: "", label: t.graces.none },
          { value: "1h", label: t.graces.h1 },
          { value: "24h", label: t.graces.h24 },
          { value: "7d", label: t.graces.d7 },
          { value: "30d", label: t.graces.d30 },
        ]}
      />
    </ConfirmDialog>
  );
}

export function EndGracePeriod({ apiKey: { keyId }, onClose }: KeyDialog) {
  const t = useTexts(keyPage);
  const refresh = useRefresh();
  const change = useMutation(IssuedApiKeysService.method.endGracePeriod, {
    onSuccess: onClose,
    onSettled: () => refresh(),
  });
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t.endGrace}
      description={t.endGraceWhat}
      confirmLabel={t.endGrace}
      isDangerous
      change={change}
      onConfirm={() => change.mutate({ keyId })}
    />
  );
}
