import { expect, test } from "vitest";
import { derive, succeeded } from "../support/conformance.ts";
import { check, describeRequest } from "../support/ext-authz.ts";
import { fields, forwardAuth } from "../support/forward-auth.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { introspect } from "../support/introspect.ts";
import { type Json, paths } from "../support/rest.ts";
import { openStream } from "../support/verification-stream.ts";

/** What a key shows of its older secrets. A stop of the server stores the uses that it has noted. */

const suite = useGuardedService();
const environment = { KEYHOLD_AUTH: "admin-token" };
const stored = () => suite.server.restart(environment);

async function newKey() {
  const { secret, issued_api_key: key } = succeeded(
    await suite.rest("POST", paths.issued, { name: "a key", actor_id: "actor_1" }),
  );
  return { keyId: key.key_id as string, secret: secret as string };
}

async function rotate(keyId: string, grace?: string): Promise<{ secret: string; key: Json }> {
  const body = grace === undefined ? {} : { grace_period: grace };
  const { secret, issued_api_key: key } = succeeded(await suite.rest("POST", `${paths.issued}/${keyId}:rotate`, body));
  return { secret, key };
}

const verify = async (credential: string, fields: Json = {}) =>
  succeeded(await suite.rest("POST", `${paths.keys}:verify`, { credential, ...fields }));

const get = async (keyId: string) => succeeded(await suite.rest("GET", `${paths.issued}/${keyId}`));

/** Returns whether each older secret was used, the newest first. */
const usesOf = async (keyId: string) =>
  (await get(keyId)).previous_secrets.map(({ last_used_time: time }: Json) => time !== undefined);

test("a key shows the secrets in their grace periods, by hint, until they end", async () => {
  const { keyId, secret } = await newKey();
  const issued = await get(keyId);
  expect(issued.previous_secrets ?? []).toEqual([]);
  const first = await rotate(keyId, "1h");
  const ofFirst = {
    hint: issued.hint,
    create_time: issued.create_time,
    expire_time: expect.stringMatching(/Z$/),
  };
  expect(first.key.previous_secrets).toEqual([ofFirst]);
  expect(Date.parse(first.key.previous_secrets[0].expire_time)).toBe(Date.parse(first.key.rotate_time) + 3_600_000);
  const second = await rotate(keyId, "2h");
  const ofSecond = { ...ofFirst, hint: first.key.hint, create_time: first.key.rotate_time };
  expect(second.key.previous_secrets).toEqual([ofSecond, ofFirst]);
  expect(await get(keyId)).toEqual(second.key);
  const text = JSON.stringify(second.key);
  for (const one of [secret, first.secret, second.secret]) expect(text).not.toContain(one.slice(-20, -4));
  expect(text).not.toContain("digest");

  await suite.sql`
    UPDATE api_keys SET previous_secrets = jsonb_set(previous_secrets, '{1,expire_time}', to_jsonb(now() - interval '1 second'))
    WHERE key_id = ${keyId}`;
  expect((await get(keyId)).previous_secrets).toEqual([ofSecond]);
  const { issued_api_keys: keys } = succeeded(await suite.rest("GET", `${paths.issued}?filter=key_id="${keyId}"`));
  expect(keys[0].previous_secrets).toEqual([ofSecond]);
  expect(succeeded(await suite.rest("POST", `${paths.issued}/${keyId}:endGrace`, {})).previous_secrets ?? []).toEqual(
    [],
  );
});

test("a use of an older secret, or of a token derived from it, is shown for that secret, whatever the protocol", async () => {
  const token = suite.token("keyhold:verify");
  const inBatch = (credential: string) =>
    suite.rest("POST", `${paths.keys}:batchVerify`, { requests: [{ credential }, { credential }] });
  const inStream = async (credential: string) => {
    const stream = openStream(suite.server.address, bearer(token));
    stream.send({ id: 1, request: { credential } });
    await stream.received(1);
    await stream.end();
  };
  const uses: Record<string, (credential: string) => Promise<unknown>> = {
    verify,
    inBatch,
    inStream,
    introspected: (secret) => introspect(suite.server, { token: secret }, bearer(token)),
    derived: async (secret) => verify((await derive(suite.rest, secret)).token),
    macaroon: async (secret) =>
      verify((await derive(suite.rest, secret, { algorithm: "TOKEN_ALGORITHM_MACAROON" })).token),
    forwardAuth: (secret) => forwardAuth(suite.server, { headers: fields(`Authorization: Bearer ${secret}`) }),
    extAuthz: (secret) => check(suite.server, describeRequest({ headers: fields(`Authorization: Bearer ${secret}`) })),
  };
  await suite.server.restart({
    ...environment,
    ...{ KEYHOLD_GATEWAYS: "forward-auth,ext-authz", KEYHOLD_GATEWAY_CALLERS: "network" },
    KEYHOLD_GATEWAY_NETWORKS: "127.0.0.1/32",
  });
  const keyIds: Record<string, string> = {};
  for (const [name, use] of Object.entries(uses)) {
    const { keyId, secret } = await newKey();
    keyIds[name] = keyId;
    // Cached and used in this minute while it is the current secret.
    await use(secret);
    const second = await rotate(keyId, "1h");
    await use(second.secret);
    await rotate(keyId, "1h");
    await use(secret);
  }
  await stored();
  for (const [name, keyId] of Object.entries(keyIds))
    expect([name, await usesOf(keyId)]).toEqual([name, [false, true]]);
});

test("uses of the current secret, before and after a rotation, are none of the older one", async () => {
  const { keyId, secret } = await newKey();
  await verify(secret);
  const { secret: current } = await rotate(keyId, "1h");
  await verify(current);
  await stored();
  const key = await get(keyId);
  expect(key.last_used_time).toMatch(/:00Z$/);
  expect(await usesOf(keyId)).toEqual([false]);
  const { time } = (await suite.sql`SELECT update_time AS time FROM api_keys WHERE key_id = ${keyId}`)[0] ?? {};
  expect(Date.parse(key.update_time)).toBe(time.getTime());
});

test("a use is shown within 15 s, while the server runs", { timeout: 30_000 }, async () => {
  const { keyId, secret } = await newKey();
  await rotate(keyId, "1h");
  await verify(secret);
  await expect.poll(() => usesOf(keyId), { timeout: 15_000, interval: 100 }).toEqual([true]);
});

test("the last address is stored as configured, by default not, and never in the audit log", async () => {
  const { keyId, secret } = await newKey();
  const eventsOf = async () =>
    succeeded(await suite.rest("GET", `${paths.auditEvents}?filter=key_id="${keyId}"`)).audit_events;
  await rotate(keyId, "1h");
  await expect.poll(eventsOf).toHaveLength(2);
  const addressAfter = async (setting: string, clientIp?: string) => {
    await suite.sql`UPDATE api_keys SET last_used_time = last_used_time - interval '1 hour' WHERE key_id = ${keyId}`;
    await suite.server.restart({ ...environment, KEYHOLD_LAST_USED_ADDRESS: setting });
    await verify(secret, { client_ip: clientIp });
    await stored();
    return (await get(keyId)).last_used_address;
  };
  expect(await addressAfter("off", "203.0.113.77")).toBeUndefined();
  expect(await addressAfter("truncated", "203.0.113.77")).toBe("203.0.113.0/24");
  expect(await addressAfter("truncated")).toBe("203.0.113.0/24");
  expect(await addressAfter("truncated", "::ffff:198.51.100.7")).toBe("198.51.100.0/24");
  expect(await addressAfter("truncated", "2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1::/48");
  expect(await addressAfter("full", "2001:DB8:1:2:3:4:5:6")).toBe("2001:db8:1:2:3:4:5:6");
  expect(await eventsOf()).toHaveLength(2);
  await suite.sql`DELETE FROM api_keys WHERE key_id = ${keyId}`;
  await expect.poll(eventsOf).toHaveLength(3);
  expect(JSON.stringify(await eventsOf())).not.toMatch(/2001:db8|secret_uses|previous_secrets/);
});

test("gateways report the address of their client", async () => {
  await suite.server.restart({
    ...environment,
    ...{ KEYHOLD_GATEWAYS: "forward-auth", KEYHOLD_GATEWAY_CALLERS: "network", KEYHOLD_LAST_USED_ADDRESS: "truncated" },
    ...{ KEYHOLD_GATEWAY_NETWORKS: "127.0.0.1/32", KEYHOLD_TRUSTED_PROXIES: "127.0.0.1/32" },
  });
  const { keyId, secret } = await newKey();
  const headers = fields(`Authorization: Bearer ${secret}`, "X-Forwarded-For: 198.51.100.7");
  expect((await forwardAuth(suite.server, { headers })).status).toBe(200);
  await stored();
  expect((await get(keyId)).last_used_address).toBe("198.51.100.0/24");
});
