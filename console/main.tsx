import "./session/trusted-types.ts";
import "./components.css";
import "./console.css";
import { TransportProvider } from "@connectrpc/connect-query";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { router } from "./router.tsx";
import { nonce } from "./session/page-settings.ts";
import { loadSession, queryClient } from "./session/query-client.ts";
import { SessionGate } from "./session/session-gate.tsx";
import { transport } from "./session/transport.ts";
import { LanguageProvider } from "./texts/language.tsx";
import { cssVariables, theme } from "./theme.ts";

// Neither waits for the other, nor for the first rendering. RouterProvider subscribes only when it is rendered, and would miss a step back or
// forward before.
router.history.subscribe(router.load);
void router.load();
void loadSession();

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
          <QueryClientProvider client={queryClient}>
            <SessionGate>
              <RouterProvider router={router} />
            </SessionGate>
          </QueryClientProvider>
        </TransportProvider>
      </LanguageProvider>
    </MantineProvider>
  </StrictMode>,
);
