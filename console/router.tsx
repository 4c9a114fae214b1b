import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { requirementsOf } from "./navigation.ts";
import { Layout } from "./parts/layout.tsx";
import { PageFailed, PageNotFound } from "./parts/page-failed.tsx";
import { PageLoader } from "./parts/page-loader.tsx";
import { USAGE_PARAMETERS } from "./parts/usage/usage-search.ts";
import type { RpcName } from "./session/permissions.ts";

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** The RPCs without which the page is useless. */
    readonly requires?: readonly RpcName[];
  }
  interface Register {
    router: typeof router;
  }
}

const root = createRootRoute({ component: Layout });

/** Search parameters: the values of each. */
type Search = Readonly<Record<string, readonly string[]>>;

/** Keeps these search parameters of a page. */
function only<const N extends string>(...names: readonly N[]) {
  return (search: { readonly [K in N]?: readonly string[] }): typeof search => {
    const kept = names.filter((name) => search[name] !== undefined).map((name) => [name, search[name]]);
    return Object.fromEntries(kept);
  };
}

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/overview.tsx"), "OverviewPage"),
});

const keyList = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  validateSearch: only("filter"),
  staticData: { requires: requirementsOf("/keys") },
  component: lazyRouteComponent(() => import("./pages/keys.tsx"), "KeysPage"),
});

const newKeyPage = createRoute({
  getParentRoute: () => root,
  path: "/keys/new",
  staticData: { requires: requirementsOf("/keys/new") },
  component: lazyRouteComponent(() => import("./pages/new-key.tsx"), "NewKeyPage"),
});

const importPage = createRoute({
  getParentRoute: () => root,
  path: "/keys/import",
  staticData: { requires: requirementsOf("/keys/import") },
  component: lazyRouteComponent(() => import("./pages/import-keys.tsx"), "ImportKeysPage"),
});

const keyPage = createRoute({
  getParentRoute: () => root,
  path: "/keys/$keyId",
  staticData: { requires: ["ApiKeysService/GetApiKey"] },
  component: lazyRouteComponent(() => import("./pages/key.tsx"), "KeyPage"),
});

const verifyPage = createRoute({
  getParentRoute: () => root,
  path: "/verify",
  staticData: { requires: requirementsOf("/verify") },
  component: lazyRouteComponent(() => import("./pages/verify.tsx"), "VerifyPage"),
});

const actorList = createRoute({
  getParentRoute: () => root,
  path: "/actors",
  validateSearch: only("actor", "limit"),
  staticData: { requires: requirementsOf("/actors") },
  component: lazyRouteComponent(() => import("./pages/actors.tsx"), "ActorsPage"),
});

const actorPage = createRoute({
  getParentRoute: () => root,
  path: "/actors/$actorId",
  staticData: { requires: ["ActorsService/ListActors"] },
  component: lazyRouteComponent(() => import("./pages/actor.tsx"), "ActorPage"),
});

const usagePage = createRoute({
  getParentRoute: () => root,
  path: "/usage",
  validateSearch: only(...USAGE_PARAMETERS),
  staticData: { requires: requirementsOf("/usage") },
  component: lazyRouteComponent(() => import("./pages/usage.tsx"), "UsagePage"),
});

const auditLog = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  validateSearch: only("filter", "live"),
  staticData: { requires: requirementsOf("/audit") },
  component: lazyRouteComponent(() => import("./pages/audit.tsx"), "AuditPage"),
});

const auditEvent = createRoute({
  getParentRoute: () => root,
  path: "/audit/$seq",
  staticData: { requires: ["AuditService/GetAuditEvent"] },
  component: lazyRouteComponent(() => import("./pages/audit-event.tsx"), "AuditEventPage"),
});

const webhookList = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  staticData: { requires: requirementsOf("/webhooks") },
  component: lazyRouteComponent(() => import("./pages/webhooks.tsx"), "WebhooksPage"),
});

const webhookPage = createRoute({
  getParentRoute: () => root,
  path: "/webhooks/$endpointId",
  // The state of the deliveries that are listed, and the delivery that is open.
  validateSearch: only("state", "delivery"),
  staticData: { requires: ["WebhookEndpointsService/GetWebhookEndpoint"] },
  component: lazyRouteComponent(() => import("./pages/webhook-endpoint.tsx"), "WebhookEndpointPage"),
});

const hmacKeyList = createRoute({
  getParentRoute: () => root,
  path: "/hmac-keys",
  staticData: { requires: requirementsOf("/hmac-keys") },
  component: lazyRouteComponent(() => import("./pages/hmac-keys.tsx"), "HmacKeysPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    ...[overview, keyList, newKeyPage, importPage, keyPage, verifyPage, actorList, actorPage, usagePage],
    ...[auditLog, auditEvent, webhookList, webhookPage, hmacKeyList],
  ]),
  basepath: "/console",
  parseSearch: (text): Search => {
    const parameters = new URLSearchParams(text);
    return Object.fromEntries([...new Set(parameters.keys())].map((name) => [name, parameters.getAll(name)]));
  },
  stringifySearch: (search: Record<string, unknown>) => {
    const pairs = Object.entries(search).flatMap(([name, values]) =>
      [values ?? []].flat().map((value) => [name, String(value)]),
    );
    return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
  },
  defaultPendingComponent: PageLoader,
  defaultErrorComponent: PageFailed,
  defaultNotFoundComponent: PageNotFound,
});
