import "./session/trusted-types.ts";
import "./components.css";
import "./console.css";
import { RouterProvider } from "@tanstack/react-router";
import { render } from "./render.tsx";
import { router } from "./router.tsx";
import { loadSession } from "./session/query-client.ts";
import { SessionGate } from "./session/session-gate.tsx";
import { cssVariables, theme } from "./theme.ts";

// Neither waits for the other, nor for the first rendering. RouterProvider subscribes only when it is rendered, and would miss a step back or
// forward before.
router.history.subscribe(router.load);
void router.load();
void loadSession();

render(
  { theme, cssVariables },
  <SessionGate>
    <RouterProvider router={router} />
  </SessionGate>,
);
