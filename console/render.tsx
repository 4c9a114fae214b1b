import { TransportProvider } from "@connectrpc/connect-query";
import { type CSSVariablesResolver, MantineProvider, type MantineThemeOverride } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { nonce } from "./session/page-settings.ts";
import { queryClient } from "./session/query-client.ts";
import { transport } from "./session/transport.ts";
import { LanguageProvider } from "./texts/language.tsx";

interface Look {
  readonly theme: MantineThemeOverride;
  readonly cssVariables: CSSVariablesResolver;
}

/** Renders a page, with what all of its parts use. */
export function render({ theme, cssVariables }: Look, page: ReactNode): void {
  const root = document.getElementById("root");
  if (root === null) throw new Error("the page has no element #root");
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
            <QueryClientProvider client={queryClient}>{page}</QueryClientProvider>
          </TransportProvider>
        </LanguageProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
