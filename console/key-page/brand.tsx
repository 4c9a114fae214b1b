import { Group, Text } from "@mantine/core";
import { useEffect } from "react";
import { brandLogo, brandName } from "../session/brand-settings.ts";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";

/** Sets the title of the document. */
export function useBrandTitle(title: string): void {
  useEffect(() => {
    document.title = brandName === "" ? title : `${title} · ${brandName}`;
  }, [title]);
}

/** The logo and the name of who runs the service. */
export function Brand() {
  const t = useTexts(ownerPage);
  return (
    <Group gap="sm" wrap="nowrap">
      {brandLogo !== "" && <img src={brandLogo} alt="" className="brand-logo" />}
      <Text fw={700} className="breakable">
        {brandName === "" ? t.apiKeys : brandName}
      </Text>
    </Group>
  );
}
