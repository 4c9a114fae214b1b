import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { ApiKey } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ReturnFocus, useFocusFallback } from "../parts/return-focus.tsx";
import { keyPage } from "../texts/key-page.ts";
import { useTexts } from "../texts/language.tsx";
import { type KeyAction, useKeyActions } from "./owner.ts";

const rotateDialogs = () => import("../parts/keys/dialogs/rotate-key.tsx");

const DIALOGS = {
  rotate: lazy(async () => ({ default: (await rotateDialogs()).RotateKey })),
  endGrace: lazy(async () => ({ default: (await rotateDialogs()).EndGracePeriod })),
  revoke: lazy(async () => ({ default: (await import("../parts/keys/dialogs/revoke-key.tsx")).RevokeKey })),
} as const;

/** The changes of a key that the owner may make. */
export function KeyButtons({ apiKey }: { readonly apiKey: ApiKey }) {
  const t = useTexts(keyPage);
  const actions = useKeyActions(apiKey);
  const [open, setOpen] = useState<KeyAction | null>(null);
  useFocusFallback(actions.join());
  const Dialog = open === null ? null : DIALOGS[open];
  return (
    <>
      {actions.map((action) => (
        <Button
          key={action}
          size="compact-sm"
          variant="default"
          aria-label={`${t[action]}: ${apiKey.name}`}
          onClick={() => setOpen(action)}
        >
          {t[action]}
        </Button>
      ))}
      {Dialog !== null && (
        <ReturnFocus>
          <Suspense>
            <Dialog apiKey={apiKey} onClose={() => setOpen(null)} />
          </Suspense>
        </ReturnFocus>
      )}
    </>
  );
}
