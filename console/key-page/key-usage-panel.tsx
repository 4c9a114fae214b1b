import { Button, Group } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useId, useState } from "react";
import { PageLoader } from "../parts/page-loader.tsx";
import { useCan } from "../session/permissions.ts";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";

const KeyUsage = lazy(async () => ({ default: (await import("../parts/usage/key-usage.tsx")).KeyUsage }));

interface Props {
  readonly keyId: string;
  readonly name: string;
  /** Buttons beside the one that shows the usage. */
  readonly children: ReactNode;
}

/** Shows the usage of a key if that is wanted: only then it is read, and what draws it is loaded. */
export function KeyUsagePanel({ keyId, name, children }: Props) {
  const t = useTexts(ownerPage);
  const isPermitted = useCan()("UsageService/GetKeyUsage");
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const label = isOpen ? t.hideUsage : t.showUsage;
  return (
    <>
      <Group gap="xs">
        {children}
        {isPermitted && (
          <Button
            size="compact-sm"
            variant="default"
            aria-expanded={isOpen}
            aria-controls={isOpen ? id : undefined}
            aria-label={`${label}: ${name}`}
            onClick={() => setOpen(!isOpen)}
          >
            {label}
          </Button>
        )}
      </Group>
      {isOpen && (
        <div id={id}>
          <Suspense fallback={<PageLoader />}>
            <KeyUsage keyId={keyId} />
          </Suspense>
        </div>
      )}
    </>
  );
}
