import { Alert } from "@mantine/core";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { LinkAnchor } from "./links.tsx";
import { Page } from "./page.tsx";

export function PageFailed() {
  const t = useTexts(common);
  return (
    <Page title={t.error}>
      <Alert role="alert" color="red" title={t.crashed} />
    </Page>
  );
}

export function PageNotFound() {
  const t = useTexts(common);
  return (
    <Page title={t.notFound}>
      <div>
        <LinkAnchor to="/">{t.pages.overview}</LinkAnchor>
      </div>
    </Page>
  );
}
