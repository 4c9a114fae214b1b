import "../session/trusted-types.ts";
import "../components.css";
import "../console.css";
import "./key-page.css";
import { TransportProvider } from "@connectrpc/connect-query";
import { Alert, MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { ErrorBoundary } from "../parts/error-boundary.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { brandColor } from "../session/brand-settings.ts";
import { nonce } from "../session/page-settings.ts";
import { queryClient } from "../session/query-client.ts";
import { transport } from "../session/transport.ts";
import { common } from "../texts/common.ts";
import { LanguageProvider, useTexts } from "../texts/language.tsx";
import { brandTheme } from "./brand-theme.ts";
import { reportHeight } from "./embed.ts";
import { LinkGate } from "./gate.tsx";
import { openLink, takeToken } from "./link.ts";
import { OwnerPage } from "./owner-page.tsx";

const opening = openLink(takeToken());

// Another link in the address of the same page does not load it again.
window.addEventListener("hashchange", () => {
  if (location.hash !== "") location.reload();
});

reportHeight();

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element #root");

const { theme, cssVariables } = brandTheme(brandColor);

function Crashed() {
  return <Alert role="alert" color="red" title={useTexts(common).crashed} />;
}

createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <LanguageProvider>
        <TransportProvider transport={transport}>
          <QueryClientProvider client={queryClient}>
            <ErrorBoundary fallback={<Crashed />}>
              <Suspense fallback={<PageLoader />}>
                <LinkGate first={opening}>
                  <OwnerPage />
                </LinkGate>
              </Suspense>
            </ErrorBoundary>
          </QueryClientProvider>
        </TransportProvider>
      </LanguageProvider>
    </MantineProvider>
  </StrictMode>,
);
