import { type RpcName, useCan } from "./session/permissions.ts";
import type { common } from "./texts/common.ts";

interface Entry {
  readonly to: string;
  readonly name: keyof (typeof common)["en"]["pages"];
  /** The RPCs without which the page is useless. */
  readonly requires: readonly RpcName[];
  /** The RPC of the page that leads to this one: the entry is for callers without that page. */
  readonly unless?: RpcName;
}

/** The pages of the navigation, in their order. */
export const navigation = [
  { to: "/", name: "overview", requires: [] },
  { to: "/keys", name: "keys", requires: ["ApiKeysService/ListApiKeys"] },
  {
    to: "/keys/new",
    name: "newKey",
    requires: ["IssuedApiKeysService/CreateIssuedApiKey"],
    unless: "ApiKeysService/ListApiKeys",
  },
  {
    to: "/keys/import",
    name: "importKeys",
    requires: ["ImportedApiKeysService/BatchCreateImportedApiKeys"],
    unless: "ApiKeysService/ListApiKeys",
  },
  { to: "/verify", name: "verify", requires: ["ApiKeysService/ExplainApiKey"] },
  { to: "/actors", name: "actors", requires: ["ActorsService/ListActors"] },
  { to: "/usage", name: "usage", requires: ["UsageService/QueryUsage"] },
  { to: "/audit", name: "audit", requires: ["AuditService/ListAuditEvents"] },
  { to: "/webhooks", name: "webhooks", requires: ["WebhookEndpointsService/ListWebhookEndpoints"] },
  { to: "/hmac-keys", name: "hmacKeys", requires: ["HmacKeysService/ListHmacKeys"] },
] as const satisfies readonly Entry[];

/** Returns the RPCs without which a page of the navigation is useless. */
export function requirementsOf(page: (typeof navigation)[number]["to"]): readonly RpcName[] {
  return navigation.find(({ to }) => to === page)?.requires ?? [];
}

/** Returns the pages of the navigation that the caller may use. */
export function useNavigation() {
  const can = useCan();
  return navigation.filter(({ requires, ...entry }) => can(...requires) && !("unless" in entry && can(entry.unless)));
}
