import "../session/trusted-types.ts";
import "../components.css";
import "../console.css";
import "./key-page.css";
import { Alert } from "@mantine/core";
import { Suspense } from "react";
import { ErrorBoundary } from "../parts/error-boundary.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { render } from "../render.tsx";
import { brandColor } from "../session/brand-settings.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { brandTheme } from "./brand-theme.ts";
import { reportHeight } from "./embed.ts";
import { LinkGate } from "./gate.tsx";
import { openLink, takeToken } from "./link.ts";
import { MessagePage } from "./message-page.tsx";
import { OwnerPage } from "./owner-page.tsx";

const opening = openLink(takeToken());

// Another link in the address of the same page does not load it again.
window.addEventListener("hashchange", () => {
  if (location.hash !== "") location.reload();
});

reportHeight();

function Crashed() {
  const t = useTexts(common);
  return (
    <MessagePage title={t.error}>
      <Alert role="alert" color="red" title={t.crashed} />
    </MessagePage>
  );
}

render(
  brandTheme(brandColor),
  <ErrorBoundary fallback={<Crashed />}>
    <Suspense fallback={<PageLoader />}>
      <LinkGate first={opening}>
        <OwnerPage />
      </LinkGate>
    </Suspense>
  </ErrorBoundary>,
);
