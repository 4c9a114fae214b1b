import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { AuthMethod } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { useCaller } from "../session/permissions.ts";
import { useTexts } from "../texts/language.tsx";
import { session } from "../texts/session.ts";
import { ReturnFocus } from "./return-focus.tsx";

const SessionDialog = lazy(async () => ({ default: (await import("./session-dialog.tsx")).SessionDialog }));

/** Says who uses the console, and leads to the settings and the way out. */
export function SessionMenu() {
  const t = useTexts(session);
  const { subject, authMethod } = useCaller();
  const [isOpen, setOpen] = useState(false);
  const shown = authMethod === AuthMethod.NONE ? null : `${subject.slice(0, 16)}${subject.length > 16 ? "…" : ""}`;
  return (
    <>
      <Button
        variant="default"
        size="xs"
        maw="50vw"
        aria-haspopup="dialog"
        aria-label={shown === null ? t.menu : `${shown}, ${t.menu}`}
        onClick={() => setOpen(true)}
      >
        {shown ?? t.menu}
      </Button>
      {isOpen && (
        <ReturnFocus>
          <Suspense>
            <SessionDialog onClose={() => setOpen(false)} />
          </Suspense>
        </ReturnFocus>
      )}
    </>
  );
}
