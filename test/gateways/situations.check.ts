import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { type Application, PROTECTED, startApplication, variablesOf } from "./application.ts";
import { type Answer, type Sent, send, sendHttp2, upgrade } from "./client.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { caddy } from "./kinds/caddy.ts";
import { KINDS } from "./kinds/index.ts";
import { INSTALL_TIMEOUT, installPrograms } from "./programs.ts";
import { ACTOR, type Keys, makeKeys, type Servers, startServers } from "./servers.ts";
import { HOP_BY_HOP, OWN_HOPS, PATHS, SITUATIONS, SPOOFED, UNLISTED } from "./situations.ts";

/** Each gateway in front of an application, with two Keyhold servers. */

let application: Application;
let servers: Servers;
let keys: Keys;
beforeAll(async () => {
  await installPrograms();
  [application, servers] = await Promise.all([startApplication(), startServers("forward-auth,ext-authz")]);
  keys = await makeKeys(servers);
}, INSTALL_TIMEOUT);
afterAll(() => Promise.all([application?.close(), servers?.close()]));
beforeEach(() => application.forget());

/** Whether the application has answered. */
const isPassed = ({ status }: Answer) => status === 200 || status === 101;

const bearer = (credential: string) => [["Authorization", `Bearer ${credential}`]] as const;

describe.each(KINDS)("$name", (kind) => {
  const { limits } = kind;
  let gateway: Gateway;
  beforeAll(async () => {
    const settings = { application: application.address, keyhold: servers.addresses, token: servers.token };
    gateway = await startGateway(kind, join(inject("testDir"), "situations"), settings);
  });
  afterAll(() => gateway?.stop());

  /** Sends a request, and checks that only one with a verdict reached the application, and no secret a client. */
  async function ask(sent: Sent, by: typeof send = send): Promise<Answer> {
    application.forget();
    const answer = await by(gateway.url, sent);
    expect(application.received).toHaveLength(isPassed(answer) ? 1 : 0);
    if (answer.status !== 200) expect(answer.body).not.toContain(PROTECTED);
    expect(JSON.stringify(answer)).not.toContain(servers.token);
    expect(answer.headers.filter(([name]) => /keyhold/i.test(name))).toEqual([]);
    return answer;
  }

  /** Returns the variables of the identity as the application received them. */
  function identity(): Record<string, readonly string[]> {
    const [reached] = application.received;
    if (reached === undefined) throw new Error("nothing reached the application");
    expect(JSON.stringify(reached)).not.toContain(servers.token);
    return Object.fromEntries([...variablesOf(reached)].filter(([name]) => name.includes("KEYHOLD")));
  }

  const IDENTITY = () => ({
    HTTP_X_KEYHOLD_KEY_ID: [keys.keyId],
    HTTP_X_KEYHOLD_ACTOR_ID: [ACTOR],
    HTTP_X_KEYHOLD_SCOPES: ["read write"],
  });

  test.each(SITUATIONS)("$name", async ({ name, sent, status, challenge }) => {
    const request = sent(keys);
    const answer = await ask(request);
    expect(answer.status).toBe(limits.situations?.[name] ?? limits.statusOf?.[status] ?? status);
    if (challenge !== undefined) expect(answer.header("WWW-Authenticate")).toContain(challenge);
    if (answer.status === 401) expect(answer.header("WWW-Authenticate")).toMatch(/^Bearer/);
    if (answer.status !== 200) return;
    const { method = "GET", target = "/", body = "" } = request;
    expect(application.received[0]).toMatchObject({ method, target, body });
    expect(answer.body).toBe(method === "HEAD" ? "" : PROTECTED);
  });

  test.each(kind.edited)("edited $name, it decides alike", async ({ edits, allows }) => {
    const settings = { application: application.address, keyhold: servers.addresses, token: servers.token, edits };
    const edited = await startGateway(kind, join(inject("testDir"), "edited"), settings);
    onTestFinished(() => edited.stop());
    for (const { name, sent, status } of SITUATIONS) {
      application.forget();
      const answer = await send(edited.url, sent(keys));
      const expected = allows.test(name) ? 200 : (limits.situations?.[name] ?? limits.statusOf?.[status] ?? status);
      expect([name, answer.status]).toEqual([name, expected]);
      expect(application.received).toHaveLength(expected === 200 ? 1 : 0);
    }
  });

  test("answers 429 when a limit of the key is exceeded, with when to try again", async () => {
    const limit = { name: "requests", quota: 1, window: "24h" };
    const { secret } = await servers.issue({ scopes: ["read"], rate_limits: [limit] });
    expect((await ask({ headers: bearer(secret) })).status).toBe(200);
    const answer = await ask({ headers: bearer(secret) });
    expect(answer.status).toBe(limits.statusOf?.[429] ?? 429);
    if (answer.status !== 429) return;
    expect(Number(answer.header("Retry-After"))).toBeGreaterThan(80_000);
    expect(answer.header("RateLimit-Policy")).toBe('"requests";q=1;w=86400');
  });

  test("passes an identity with a hundred scopes", async () => {
    const scopes = ["read", ...Array.from({ length: 99 }, (_, place) => `resource-${place}.operation-${place}`)];
    const { secret } = await servers.issue({ scopes });
    expect((await ask({ headers: bearer(secret) })).status).toBe(200);
    expect(identity().HTTP_X_KEYHOLD_SCOPES?.[0]?.split(" ").toSorted()).toEqual(scopes.toSorted());
  });

  test("refuses a request whose identity is longer than it, or the application, accepts", async () => {
    const scopes = ["read", ...Array.from({ length: 99 }, (_, place) => `${place}`.padStart(255, "s"))];
    const { secret } = await servers.issue({ scopes });
    // The application accepts 16 KB, as Node does by default.
    expect((await ask({ headers: bearer(secret) })).status).toBe(limits.longIdentity ?? 431);
  });

  test("decides a request with long headers, or refuses it", async () => {
    for (const size of [6_000, 20_000, 100_000])
      for (const credential of [keys.valid, keys.revoked]) {
        const sent = { headers: [...bearer(credential), ["X-Long", "a".repeat(size)]] as const };
        // Some end the connection, and say why only then.
        const status = await ask(sent).then(
          (answer) => answer.status,
          () => "closed",
        );
        if (size === 6_000) expect(status).toBe(credential === keys.valid ? 200 : 401);
        if (credential === keys.revoked) expect(status).not.toBe(200);
        expect(application.received).toHaveLength(status === 200 ? 1 : 0);
      }
  });

  test("passes the identity", async () => {
    await ask({ headers: bearer(keys.valid) });
    expect(identity()).toEqual(IDENTITY());
  });

  test.each(SPOOFED)("a client's %s does not reach the application", async (name, value) => {
    const answer = await ask({ headers: [...bearer(keys.valid), [name, value]] });
    if (limits.refusesSpoofed) expect(answer.status).toBe(limits.refusesSpoofed);
    else expect(identity()).toEqual(IDENTITY());
  });

  test("spoofed headers do not replace a credential", async () => {
    const answer = await ask({ headers: [...SPOOFED, ...UNLISTED] });
    expect(answer.status).toBe(401);
  });

  test(`a header that the file does not list ${kind.limits.passesUnlisted ? "reaches" : "does not reach"} the application`, async () => {
    const answer = await ask({ headers: [...bearer(keys.valid), ...UNLISTED] });
    if (limits.refusesSpoofed) expect(answer.status).toBe(limits.refusesSpoofed);
    else if (limits.passesUnlisted)
      expect(identity()).toMatchObject({ ...IDENTITY(), HTTP_X_KEYHOLD_FUTURE: ["spoofed"] });
    else expect(identity()).toEqual(IDENTITY());
  });

  test.each(HOP_BY_HOP)("a client cannot have headers removed: %j %j", async (...hops) => {
    const answer = await ask({ headers: [...bearer(keys.valid), ...hops] });
    if (limits.ignoresHops?.(hops)) expect(isPassed(answer)).toBe(true);
    else expect(answer.status).toBe(400);
    if (isPassed(answer)) expect(identity()).toEqual(IDENTITY());
    for (const reached of application.received)
      expect(String(variablesOf(reached).get("HTTP_CONNECTION"))).not.toMatch(/x-|closed/i);
    const wrong = await ask({ headers: [...bearer(keys.restricted), ...hops], from: "127.0.0.3" });
    expect(isPassed(wrong)).toBe(false);
  });

  test.each(OWN_HOPS)("passes a request with %j %j", async (...fields) => {
    expect((await ask({ headers: [...bearer(keys.valid), ...fields] })).status).toBe(200);
    expect(identity()).toEqual(IDENTITY());
  });

  test.each(PATHS)("%s has nothing without a credential, and nothing of Keyhold", async (target) => {
    for (const method of ["GET", "POST"]) {
      const refused = await ask({ method, target });
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(refused.status).toBeLessThan(500);
      // The application's answer, or one of the proxy itself, such as to an invalid path.
      const allowed = await ask({ method, target, headers: bearer(keys.valid) });
      if (allowed.status === 200) expect(allowed.body).toBe(PROTECTED);
      else expect([400, 403, 404]).toContain(allowed.status);
    }
  });

  if (kind.servesHttp2)
    test("decides over HTTP/2 as over HTTP/1.1", async () => {
      const over2 = (sent: Sent) => ask(sent, sendHttp2);
      const valid = { method: "POST", target: "/orders?a=b", headers: bearer(keys.valid), body: "a body" };
      expect(await over2(valid)).toMatchObject({ status: 200, body: PROTECTED });
      expect(application.received[0]).toMatchObject({ method: "POST", target: "/orders?a=b", body: "a body" });
      expect(identity()).toEqual(IDENTITY());
      expect(await over2({})).toMatchObject({ status: 401 });
      for (const key of [keys.revoked, keys.unknown])
        expect(await over2({ headers: bearer(key) })).toMatchObject({ status: 401 });
      expect(await over2({ headers: bearer(keys.withoutScope) })).toMatchObject({
        status: limits.statusOf?.[403] ?? 403,
      });
      for (const field of SPOOFED) {
        const { status } = await over2({ headers: [...bearer(keys.valid), field] });
        if (limits.refusesSpoofed) expect(status).toBe(limits.refusesSpoofed);
        else expect(identity()).toEqual(IDENTITY());
      }
    });

  test("upgrades a connection with a valid credential", async () => {
    const upgraded = await upgrade(gateway.url, { target: "/socket", headers: bearer(keys.valid) });
    if (!("socket" in upgraded)) throw new Error(`refused: ${upgraded.refused.status}`);
    const { socket } = upgraded;
    // A gateway may divide more than one byte.
    socket.write("!");
    const [echo] = await once(socket, "data");
    expect(String(echo)).toBe("!");
    socket.destroy();
    expect(application.received).toMatchObject([{ isUpgrade: true, target: "/socket" }]);
    expect(identity()).toEqual(IDENTITY());
  });

  test("upgrades no connection without one", async () => {
    for (const headers of [[], bearer(keys.revoked), bearer(keys.unknown)]) {
      const upgraded = await upgrade(gateway.url, { headers });
      expect(upgraded).toMatchObject({ refused: { status: 401 } });
    }
    expect(application.received).toEqual([]);
  });

  test("refuses the next request after a revocation", async () => {
    for (let round = 0; round < 25; round++) {
      const { secret, keyId } = await servers.issue();
      for (let use = 0; use < 3; use++) expect((await ask({ headers: bearer(secret) })).status).toBe(200);
      await servers.revoke(keyId);
      expect((await ask({ headers: bearer(secret) })).status).toBe(401);
    }
  });
});

test("Caddy keeps the query of a client if its file has none, and Keyhold takes no audience from it", async () => {
  const settings = { application: application.address, keyhold: servers.addresses, token: servers.token };
  const edits = { "?required_scopes=read": "" };
  const gateway = await startGateway(caddy, join(inject("testDir"), "edited"), { ...settings, edits });
  onTestFinished(() => gateway.stop());
  for (const target of ["/?audience=billing", "/?audience=billing&required_scopes=read"])
    expect((await send(gateway.url, { target, headers: bearer(keys.billing) })).status).toBe(400);
  expect(application.received).toEqual([]);
});
