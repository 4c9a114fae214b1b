import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useCan } from "../../session/permissions.ts";
import { keys } from "../../texts/keys.ts";
import { useTexts } from "../../texts/language.tsx";
import { ReturnFocus } from "../return-focus.tsx";
import { BULK_METHODS, BulkChange } from "./bulk-change.tsx";

const ACTIONS = ["disable", "revoke"] as const;

/** Changes of all keys that match a filter, which is not empty. */
export function BulkActions({ filter }: { readonly filter: string }) {
  const t = useTexts(keys);
  const can = useCan();
  const [open, setOpen] = useState<(typeof ACTIONS)[number] | null>(null);
  return (
    <Group gap="xs">
      {ACTIONS.filter((action) => can(BULK_METHODS[action])).map((action) => (
        <Button key={action} size="compact-sm" variant="default" onClick={() => setOpen(action)}>
          {t[action]}
        </Button>
      ))}
      {open !== null && (
        <ReturnFocus>
          <BulkChange action={open} filter={filter} onClose={() => setOpen(null)} />
        </ReturnFocus>
      )}
    </Group>
  );
}
