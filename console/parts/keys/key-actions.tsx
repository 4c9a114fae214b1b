import { Button } from "@mantine/core";
import { useState } from "react";
import { type ApiKey, KeyKind, KeyStatus } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { useKeyPermissions } from "../../session/key-permissions.ts";
import { useCan } from "../../session/permissions.ts";
import { keyPage } from "../../texts/key-page.ts";
import { useTexts } from "../../texts/language.tsx";
import { ReturnFocus, useFocusFallback } from "../return-focus.tsx";
import { DeleteKey } from "./dialogs/delete-key.tsx";
import { DisableKey, EnableKey } from "./dialogs/disable-key.tsx";
import { EditKey } from "./dialogs/edit-key.tsx";
import { RevokeKey } from "./dialogs/revoke-key.tsx";
import { EndGracePeriod, RotateKey } from "./dialogs/rotate-key.tsx";

type Action = "edit" | "rotate" | "endGrace" | "disable" | "enable" | "revoke" | "delete";

const DIALOGS = {
  edit: EditKey,
  rotate: RotateKey,
  endGrace: EndGracePeriod,
  disable: DisableKey,
  enable: EnableKey,
  revoke: RevokeKey,
  delete: DeleteKey,
} as const;

/** The changes of a key that its state and the rights of the caller allow. */
export function KeyActions({ apiKey }: { readonly apiKey: ApiKey }) {
  const t = useTexts(keyPage);
  const [open, setOpen] = useState<Action | null>(null);
  const allowed = useAllowedActions(apiKey);
  useFocusFallback(allowed.join());
  const Dialog = open === null ? null : DIALOGS[open];
  return (
    <>
      {allowed.map((action) => (
        <Button
          key={action}
          variant={action === "revoke" ? "filled" : "default"}
          color={action === "revoke" ? "red.9" : undefined}
          onClick={() => setOpen(action)}
        >
          {t[action]}
        </Button>
      ))}
      {Dialog !== null && (
        <ReturnFocus>
          <Dialog apiKey={apiKey} onClose={() => setOpen(null)} />
        </ReturnFocus>
      )}
    </>
  );
}

function useAllowedActions(apiKey: ApiKey): readonly Action[] {
  const can = useCan();
  const { canManage, canGrant } = useKeyPermissions(apiKey);
  const { status, kind, previousSecrets } = apiKey;
  const isIssued = kind === KeyKind.ISSUED;
  const isAlive = status === KeyStatus.ACTIVE || status === KeyStatus.DISABLED;
  const { method: issued } = IssuedApiKeysService;
  const { method: imported } = ImportedApiKeysService;
  const { method: keys } = ApiKeysService;
  const allowed: Readonly<Record<Action, boolean>> = {
    edit: isAlive && canGrant && can(isIssued ? issued.updateIssuedApiKey : imported.updateImportedApiKey),
    rotate: isAlive && isIssued && canGrant && can(issued.rotateIssuedApiKey),
    endGrace: isAlive && previousSecrets.length > 0 && canManage && can(issued.endGracePeriod),
    disable: status === KeyStatus.ACTIVE && canManage && can(keys.disableApiKey),
    enable: status === KeyStatus.DISABLED && canGrant && can(keys.enableApiKey),
    revoke: status !== KeyStatus.REVOKED && canManage && can(keys.revokeApiKey),
    delete: !isIssued && canManage && can(imported.deleteImportedApiKey),
  };
  return (Object.keys(DIALOGS) as Action[]).filter((action) => allowed[action]);
}
