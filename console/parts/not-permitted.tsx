import { Alert } from "@mantine/core";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { Page } from "./page.tsx";

export function NotPermitted() {
  const t = useTexts(common);
  return (
    <Page title={t.notPermitted}>
      <Alert role="alert" color="yellow">
        {t.notPermittedDetail}
      </Alert>
    </Page>
  );
}
