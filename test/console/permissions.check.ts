import { beforeAll, expect, test } from "vitest";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { importKey, succeeded, table } from "../support/conformance.ts";
import { hmacOf, importHashed } from "../support/hashed-keys.ts";
import { inHours, issue, type Json, paths } from "../support/rest.ts";
import { useConsole } from "./console.ts";

const suite = useConsole();

/** The scope that each RPC requires, written by hand (docs/endpoints.md; test/auth/matrix.test.ts). */
const SCOPES = {
  ListApiKeys: "keyhold:keys.read",
  GetApiKey: "keyhold:keys.read",
  ExplainApiKey: "keyhold:keys.read",
  CreateIssuedApiKey: "keyhold:keys.issue",
  UpdateIssuedApiKey: "keyhold:keys.update",
  RotateIssuedApiKey: "keyhold:keys.rotate",
  EndGracePeriod: "keyhold:keys.rotate",
  BatchCreateImportedApiKeys: "keyhold:keys.import",
  UpdateImportedApiKey: "keyhold:keys.update",
  DeleteImportedApiKey: "keyhold:keys.delete",
  RevokeApiKey: "keyhold:keys.revoke",
  DisableApiKey: "keyhold:keys.disable",
  EnableApiKey: "keyhold:keys.disable",
  BulkRevokeApiKeys: "keyhold:keys.revoke",
  BulkDisableApiKeys: "keyhold:keys.disable",
  ListActors: "keyhold:keys.read",
  UpdateActor: "keyhold:keys.update",
  AdjustActorQuota: "keyhold:keys.update",
  DeleteActor: "keyhold:keys.update",
  QueryUsage: "keyhold:keys.read",
  GetKeyUsage: "keyhold:keys.read",
  ListAuditEvents: "keyhold:audit",
  GetAuditEvent: "keyhold:audit",
  WatchAuditEvents: "keyhold:audit",
  GetAuditCheckpoint: "keyhold:audit",
  ListWebhookEndpoints: "keyhold:webhooks",
  GetWebhookEndpoint: "keyhold:webhooks",
  CreateWebhookEndpoint: "keyhold:webhooks",
  UpdateWebhookEndpoint: "keyhold:webhooks",
  DeleteWebhookEndpoint: "keyhold:webhooks",
  RotateWebhookEndpointSecret: "keyhold:webhooks",
  SendTestWebhookEvent: "keyhold:webhooks",
  ListWebhookDeliveries: "keyhold:webhooks",
  RedeliverWebhook: "keyhold:webhooks",
  ReplayWebhookEvents: "keyhold:webhooks",
  ListHmacKeys: "keyhold:keys.read",
  CreateHmacKey: "keyhold:keys.import",
  DeleteHmacKey: "keyhold:keys.import",
} as const;

type Rpc = keyof typeof SCOPES;

const RPCS = Object.keys(SCOPES) as Rpc[];

interface Caller {
  readonly scopes: readonly string[];
  /** Whether it is restricted to the actor `own`. */
  readonly isRestricted?: boolean;
  /** Whether its credential expires, which those that it manages do not. */
  readonly expires?: boolean;
}

const READ = "keyhold:keys.read";

/** Pages of keys need `keys.read` beside the rights over keys. */
const CALLERS: readonly Caller[] = [
  ...ADMIN_SCOPES.map((scope) => ({ scopes: [scope] })),
  ...ADMIN_SCOPES.filter((scope) => /keys\.(?!read)|audit/.test(scope)).map((scope) => ({ scopes: [READ, scope] })),
  ...[["keyhold:admin"], [READ], ["keyhold:keys.write"], [READ, "keyhold:keys.write"]].map((scopes) => ({
    ...{ scopes, isRestricted: true },
  })),
  { scopes: ["keyhold:admin"], expires: true },
];

/** Only every so many callers are tested; the first is `keyhold:admin`. */
const EVERY = Number(process.env.KEYHOLD_CONSOLE_EVERY ?? 1);

function isPermitted({ scopes, isRestricted = false }: Caller, rpc: Rpc): boolean {
  if (isRestricted && /Hmac|Audit|Webhook/.test(rpc)) return false;
  const scope = SCOPES[rpc];
  return ["keyhold:admin", scope, ...(/keys\.(?!read)/.test(scope) ? ["keyhold:keys.write"] : [])].some((one) =>
    scopes.includes(one),
  );
}

/** The pages of the navigation. */
const NAVIGATION: Readonly<Record<string, Rpc | null>> = {
  Overview: null,
  Keys: "ListApiKeys",
  // Callers that see the list of keys find them there.
  "New key": "CreateIssuedApiKey",
  "Import keys": "BatchCreateImportedApiKeys",
  "Verify & explain": "ExplainApiKey",
  Actors: "ListActors",
  Usage: "QueryUsage",
  "Audit log": "ListAuditEvents",
  Webhooks: "ListWebhookEndpoints",
  "HMAC keys": "ListHmacKeys",
};

/** What a page with this path needs. */
const LINKS: readonly (readonly [RegExp, Rpc | null])[] = [
  [/^\/$/, null],
  [/^\/keys$/, "ListApiKeys"],
  [/^\/keys\/new$/, "CreateIssuedApiKey"],
  [/^\/keys\/import$/, "BatchCreateImportedApiKeys"],
  [/^\/keys\/[^/]+$/, "GetApiKey"],
  [/^\/verify$/, "ExplainApiKey"],
  [/^\/actors(?:\/[^/]+)?$/, "ListActors"],
  [/^\/usage$/, "QueryUsage"],
  [/^\/audit$/, "ListAuditEvents"],
  [/^\/audit\/\d+$/, "GetAuditEvent"],
  [/^\/webhooks$/, "ListWebhookEndpoints"],
  [/^\/webhooks\/[^/]+$/, "GetWebhookEndpoint"],
  [/^\/hmac-keys$/, "ListHmacKeys"],
];

interface Place {
  readonly path: string;
  readonly heading: string;
  /** Its buttons outside of searches, and links that look like buttons, with the RPC that each needs; null: none. */
  readonly controls: Readonly<Record<string, Rpc | null>>;
  /** What decides who may change the key of the page. */
  readonly key?: { readonly scopes: readonly string[]; readonly restricted: readonly string[] };
}

const KEY_ACTIONS = {
  Edit: "UpdateIssuedApiKey",
  "Rotate the secret": "RotateIssuedApiKey",
  Disable: "DisableApiKey",
  Revoke: "RevokeApiKey",
} as const;

/** Actions after which somebody can use the key longer than before. */
const GRANTS = ["Edit", "Rotate the secret", "Enable"];

const LIMITS = { "Add rate limit": null, "Add quota": null };

const ENDPOINT_ACTIONS = {
  Edit: "UpdateWebhookEndpoint",
  "Rotate secret": "RotateWebhookEndpointSecret",
  Delete: "DeleteWebhookEndpoint",
  ...{ Refresh: null, pending: null, succeeded: null, failed: null },
} as const;

const OVERVIEW: Place = { path: "/", heading: "Overview", controls: {} };

const places: Place[] = [];

/** Creates a key of the actor `own`, and adds its page. */
async function addKey(name: string, fields: Json, controls: Place["controls"]): Promise<string> {
  const { keyId } = await issue(suite.rest, { name, actor_id: "own", ...fields });
  const { scopes = [], restricted_to_actor_ids: restricted = [] } = fields;
  places.push({ path: `/keys/${keyId}`, heading: name, controls, key: { scopes, restricted } });
  return keyId;
}

async function addEndpoint(name: string, controls: Place["controls"]): Promise<void> {
  const endpoint = { endpoint_id: name, url: "https://hooks.invalid", event_types: ["signing_key.rotated"] };
  succeeded(await suite.rest("POST", paths.webhookEndpoints, endpoint));
  succeeded(await suite.rest("POST", `${paths.webhookEndpoints}/${name}:sendTestEvent`, {}));
  places.push({ path: `/webhooks/${name}`, heading: name, controls: { ...ENDPOINT_ACTIONS, ...controls } });
}

beforeAll(async () => {
  await addKey("active", {}, KEY_ACTIONS);
  const { Disable: _, ...others } = KEY_ACTIONS;
  const disabled = await addKey("disabled", {}, { ...others, Enable: "EnableApiKey" });
  succeeded(await suite.rest("POST", `${paths.keys}/${disabled}:disable`, {}));
  const rotated = await addKey("rotated", {}, { ...KEY_ACTIONS, "End the grace period": "EndGracePeriod" });
  succeeded(await suite.rest("POST", `${paths.issued}/${rotated}:rotate`, { grace_period: "1h" }));
  await addKey("admin", { scopes: ["keyhold:admin"] }, KEY_ACTIONS);
  await addKey("verifier", { scopes: ["keyhold:verify"] }, KEY_ACTIONS);
  const restricted = { scopes: ["keyhold:keys.read"], restricted_to_actor_ids: ["own"] };
  await addKey("restricted", restricted, KEY_ACTIONS);
  const { keyId: imported } = await importKey(suite.rest, { name: "imported", actor_id: "own" });
  places.push({
    path: `/keys/${imported}`,
    heading: "imported",
    controls: {
      ...{ Edit: "UpdateImportedApiKey", Disable: "DisableApiKey", Revoke: "RevokeApiKey" },
      Delete: "DeleteImportedApiKey",
    },
    key: { scopes: [], restricted: [] },
  });

  const limits = { quotas: [{ name: "monthly", limit: 9, period: "QUOTA_PERIOD_MONTH" }] };
  succeeded(await suite.rest("PATCH", `${paths.actors}/own`, { actor: limits, update_mask: "quotas" }));
  await addEndpoint("on", {
    ...{ "Send test event": "SendTestWebhookEvent", "Replay events": "ReplayWebhookEvents" },
    ...{ Disable: "UpdateWebhookEndpoint", Redeliver: "RedeliverWebhook" },
  });
  await addEndpoint("off", { Enable: "UpdateWebhookEndpoint" });
  const update = { webhook_endpoint: { disabled: true }, update_mask: "disabled" };
  succeeded(await suite.rest("PATCH", `${paths.webhookEndpoints}/off`, update));
  for (const id of ["needed", "unused"])
    await suite.rest("POST", paths.hmacKeys, { hmac_key_id: id, key: "a2V5", encoding: "TEXT_ENCODING_BASE64" });
  await importHashed(suite.rest, {}, "a raw key", hmacOf("a raw key", "needed", "key"));

  places.push(
    OVERVIEW,
    {
      path: `/keys?${new URLSearchParams({ filter: 'actor_id="own"' })}`,
      heading: "Keys",
      controls: {
        ...{ "Import keys": "BatchCreateImportedApiKeys", "New key": "CreateIssuedApiKey" },
        ...{ "Revoke all that match": "BulkRevokeApiKeys", "Disable all that match": "BulkDisableApiKeys" },
      },
    },
    { path: "/keys/new", heading: "New key", controls: { ...LIMITS, "Create key": null } },
    { path: "/keys/import", heading: "Import keys", controls: { "Choose a file, or drop it here": null } },
    {
      path: "/verify",
      heading: "Verify & explain",
      controls: { Explain: null, "Show or hide what was entered": null },
    },
    { path: "/actors", heading: "Actors", controls: { Open: null } },
    {
      path: "/actors/own",
      heading: "own",
      controls: {
        ...{ "Keys of this actor": "ListApiKeys", "Add rate limit": "UpdateActor", "Add quota": "UpdateActor" },
        "Remove quota": "UpdateActor",
        ...{ "Adjust a quota …": "AdjustActorQuota", "Delete all limits …": "DeleteActor" },
      },
    },
    { path: "/usage", heading: "Usage", controls: {} },
    {
      path: "/audit",
      heading: "Audit log",
      controls: { "Verify the log": "GetAuditCheckpoint", Live: "WatchAuditEvents" },
    },
    { path: "/audit/0", heading: "Event 0", controls: {} },
    { path: "/webhooks", heading: "Webhooks", controls: { "New endpoint": "CreateWebhookEndpoint" } },
    {
      path: "/hmac-keys",
      heading: "HMAC keys",
      controls: { "New HMAC key": "CreateHmacKey", "Delete the HMAC key unused": "DeleteHmacKey" },
    },
  );
});

/** Returns the RPC that a page needs; null: none. */
function required(path: string): Rpc | null {
  const [, rpc] =
    LINKS.find(([pattern]) => pattern.test(path.replace(/\?.*/, ""))) ?? expect.fail(`unknown page ${path}`);
  return rpc;
}

/** Returns the controls of a page that a caller may use. */
function offered(caller: Caller, { controls, key }: Place): string[] {
  const isAdmin = caller.scopes.includes("keyhold:admin");
  const { scopes = [], restricted = [] } = key ?? {};
  const isToken = scopes.length > 0;
  const manages =
    scopes.every((scope) => isAdmin || caller.scopes.includes(scope)) &&
    !(isToken && caller.isRestricted === true && restricted.length === 0);
  const grants = manages && !(isToken && caller.expires === true);
  return Object.entries(controls)
    .filter(([name, rpc]) => {
      if (rpc !== null && !isPermitted(caller, rpc)) return false;
      return key === undefined || (GRANTS.includes(name) ? grants : manages);
    })
    .map(([name]) => name)
    .sort();
}

declare global {
  /** The calls of the page whose responses it has not read. */
  var openCalls: number;
}

/** Counts the calls in flight. */
function countCalls(): void {
  const { fetch } = globalThis;
  globalThis.openCalls = 0;
  globalThis.fetch = async (...request) => {
    globalThis.openCalls++;
    try {
      const response = await fetch(...request);
      await response.clone().arrayBuffer();
      return response;
    } finally {
      globalThis.openCalls--;
    }
  };
}

interface Step {
  readonly path: string;
  /** The heading of the page, or of the alert in place of it. */
  readonly heading: string;
}

/** Goes to pages, as links do, and returns what each offers once it has read all that it shows. */
async function walk(steps: readonly Step[]) {
  const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)];
  const textOf = (element: HTMLElement | null | undefined) => element?.innerText.trim() ?? "";
  const nameOf = (element: HTMLElement) =>
    element.ariaLabel ?? textOf(element instanceof HTMLInputElement ? element.labels?.[0] : element);
  const headings = () => all("#content :is(h1, [role=alert])").map((element) => textOf(element).split("\n")[0]);
  const found = [];
  for (const { path, heading } of steps) {
    history.pushState(null, "", `/console${path}`);
    const isReady = () =>
      headings().includes(heading) && globalThis.openCalls === 0 && all("[aria-label^=Loading]").length === 0;
    const end = Date.now() + 20_000;
    for (let times = 0; times < 3 && Date.now() < end; times = isReady() ? times + 1 : 0)
      await new Promise((resolve) => setTimeout(resolve));
    found.push({
      path,
      heading: headings()[0],
      buttons: all("#content :is(button, [role=switch], a[class*=Button-root])")
        .filter((element) => element.closest("search, [aria-hidden=true]") === null)
        .map(nameOf),
      navigation: all("nav[aria-label='Main navigation'] a").map(textOf),
      links: all("a[href^='/console']").map((link) => new URL((link as HTMLAnchorElement).href).pathname.slice(8)),
    });
  }
  return found;
}

const CASES = CALLERS.filter((_, place) => place % EVERY === 0).map((caller) => {
  const suffixes = [caller.isRestricted && ", restricted", caller.expires && ", expiring"];
  return { caller, name: [caller.scopes.join(" and "), ...suffixes].filter(Boolean).join("") };
});

test.each(table(CASES))("$name is offered what the server permits, and nothing else", async ({ caller }) => {
  const may = (rpc: Rpc | null) => rpc === null || isPermitted(caller, rpc);
  const fields = {
    ...{ scopes: caller.scopes, actor_id: "own" },
    ...(caller.isRestricted && { restricted_to_actor_ids: ["own"] }),
    ...(caller.expires && { expire_time: inHours(1) }),
  };
  const { secret: token } = await issue(suite.rest, fields);
  const { body } = await suite.as(token)("GET", paths.caller);
  const permittedRpcs = body.permitted_rpcs.map((name: string) => name.replace(/.*\//, ""));
  for (const rpc of RPCS)
    expect({ rpc, isPermitted: permittedRpcs.includes(rpc) }).toEqual({ rpc, isPermitted: may(rpc) });

  const page = await suite.visit({ token }, "/icon.svg");
  await page.addInitScript(countCalls);
  const calls: string[] = [];
  const denied: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/console/api/")) calls.push(request.url().replace(/.*\//, ""));
  });
  page.on("response", (response) => {
    if (response.status() === 403) denied.push(response.url());
  });

  const forbidden = places.filter(({ path }) => !may(required(path)));
  await page.goto(`${suite.server.url}/console${forbidden[0]?.path ?? "/"}`);
  await page.locator("#content :is(h1, [role=alert])").first().waitFor();
  if (forbidden.length > 0) expect(calls).toEqual(["WhoAmI"]);
  const steps = [
    // Nothing of the last page remains after another one.
    ...forbidden.flatMap(({ path }) => [OVERVIEW, { path, heading: "Not permitted", controls: {} } as Place]),
    ...places.filter((place) => !forbidden.includes(place)),
  ];
  const found = await page.evaluate(
    walk,
    steps.map(({ path, heading }) => ({ path, heading })),
  );
  // Each delivery, and each limit, has a button.
  const namesOf = (buttons: readonly string[]) =>
    [...new Set(buttons.map((name) => name.replace(/^(Redeliver|Remove quota) .*/, "$1")))].sort();
  expect(found.map(({ path, heading, buttons }) => ({ path, heading, buttons: namesOf(buttons) }))).toEqual(
    steps.map((place) => ({ path: place.path, heading: place.heading, buttons: offered(caller, place) })),
  );
  const entries = Object.keys(NAVIGATION).filter(
    (name) => may(NAVIGATION[name] ?? null) && !(/^(?:New|Import)/.test(name) && may("ListApiKeys")),
  );
  for (const { path, navigation, links } of found) {
    expect(navigation).toEqual(entries);
    expect({ path, forbidden: links.filter((link) => !may(required(link || "/"))) }).toEqual({ path, forbidden: [] });
  }
  expect(denied).toEqual([]);
  expect(RPCS.filter((rpc) => calls.includes(rpc) && !may(rpc))).toEqual([]);
});
