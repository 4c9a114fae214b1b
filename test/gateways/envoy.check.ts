import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { eventually } from "../support/keyhold.ts";
import { type Application, startApplication, variablesOf } from "./application.ts";
import { CLIENT, type Sent, send } from "./client.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { envoy } from "./kinds/envoy.ts";
import { INSTALL_TIMEOUT, installPrograms } from "./programs.ts";
import { ACTOR, type Keys, makeKeys, type Servers, startServers } from "./servers.ts";
import { SPOOFED, UNLISTED } from "./situations.ts";

/** Envoy with other settings than those of deploy/gateways/envoy.yaml. */

let application: Application;
let servers: Servers;
let keys: Keys;
beforeAll(async () => {
  await installPrograms();
  [application, servers] = await Promise.all([
    startApplication(),
    startServers("ext-authz", { KEYHOLD_TRUSTED_PROXIES: PROXY }),
  ]);
  keys = await makeKeys(servers);
}, INSTALL_TIMEOUT);
afterAll(() => Promise.all([application?.close(), servers?.close()]));
beforeEach(() => application.forget());

const bearer = (credential: string) => [["Authorization", `Bearer ${credential}`]] as const;

async function withEnvoy(edits: Readonly<Record<string, string>>, work: (gateway: Gateway) => Promise<void>) {
  const settings = { application: application.address, keyhold: servers.addresses, token: servers.token, edits };
  const gateway = await startGateway(envoy, join(inject("testDir"), "envoy"), settings);
  try {
    await work(gateway);
  } finally {
    await gateway.stop();
  }
}

test("without its own removal of spoofed headers, Keyhold lists each of them", () =>
  withEnvoy({ "contains: keyhold": "contains: another-name" }, async ({ url }) => {
    const identity = {
      HTTP_X_KEYHOLD_KEY_ID: [keys.keyId],
      HTTP_X_KEYHOLD_ACTOR_ID: [ACTOR],
      HTTP_X_KEYHOLD_SCOPES: ["read write"],
    };
    const all = [...SPOOFED, ...SPOOFED, ...UNLISTED];
    for (const spoofed of [all, ...all.map((field) => [field]), all.toReversed()]) {
      application.forget();
      expect((await send(url, { headers: [...spoofed, ...bearer(keys.valid)] })).status).toBe(200);
      const [reached] = application.received;
      if (reached === undefined) throw new Error("nothing reached the application");
      const seen = [...variablesOf(reached)].filter(([name]) => name.includes("KEYHOLD"));
      expect(Object.fromEntries(seen)).toEqual(identity);
    }
  }));

const PROXY = "127.0.0.9";
const HOPS = "use_remote_address: true, xff_num_trusted_hops: 1";
/** Earlier versions of Envoy have private networks here by default. */
const INTERNAL = "internal_address_config: { cidr_ranges: [{ address_prefix: 10.0.0.0, prefix_len: 8 }] }";

test.each([HOPS, `${HOPS}, ${INTERNAL}`])("behind a trusted proxy, the address is that of its client: %s", (hops) =>
  withEnvoy({ "use_remote_address: true": hops }, async ({ url }) => {
    const external = "X-Envoy-External-Address";
    const from = async (headers: NonNullable<Sent["headers"]>, peer = PROXY) =>
      (await send(url, { headers: [...bearer(keys.restricted), ...headers], from: peer })).status;
    expect(await from([["X-Forwarded-For", CLIENT]])).toBe(200);
    expect(await from([["X-Forwarded-For", `203.0.113.7, ${CLIENT}`]])).toBe(200);
    expect(await from([["X-Forwarded-For", `${CLIENT}, 203.0.113.7`]])).toBe(403);
    for (const address of ["203.0.113.7", "10.0.0.9", "192.168.0.9", PROXY])
      expect(
        await from([
          ["X-Forwarded-For", address],
          [external, CLIENT],
        ]),
      ).toBe(403);
    expect(await from([[external, CLIENT]])).toBe(403);
    expect(await from([])).toBe(403);
    // Not through the proxy.
    expect(
      await from(
        [
          ["X-Forwarded-For", CLIENT],
          [external, CLIENT],
        ],
        "127.0.0.3",
      ),
    ).toBe(403);
  }),
);

test("the access log of Envoy can name the actor", async () => {
  const format = "actor=%DYNAMIC_METADATA(envoy.filters.http.ext_authz:actor_id)%\\n";
  const stdout = `"@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog`;
  const log = `access_log: [{ name: stdout, typed_config: { ${stdout}, log_format: { text_format_source: { inline_string: "${format}" } } } }]`;
  await withEnvoy({ "stat_prefix: app": `stat_prefix: app, ${log}` }, async (gateway) => {
    expect((await send(gateway.url, { headers: bearer(keys.valid) })).status).toBe(200);
    await eventually(async () => gateway.log().includes(`actor=${ACTOR}\n`));
  });
});

test("a route without authorization passes no identity of a client", () => {
  const [before, after] = ["check_settings: { context_extensions: { required_scopes: read } }", "disabled: true"];
  return withEnvoy({ [before]: after }, async ({ url }) => {
    expect((await send(url, { headers: [...SPOOFED, ...UNLISTED] })).status).toBe(200);
    expect(JSON.stringify(application.received)).not.toMatch(/keyhold/i);
  });
});
