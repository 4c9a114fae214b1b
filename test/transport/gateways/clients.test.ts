import { beforeAll, describe, expect, test } from "vitest";
import { table } from "../../support/conformance.ts";
import { type Asked, type Fields, fields, forwardAuth } from "../../support/forward-auth.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { issue, paths } from "../../support/rest.ts";

/** What a server accepts of the clients of a gateway: where their credential is, and their address. */

const CLIENT = "203.0.113.7";
const PROXIES = "127.0.0.0/8, 10.0.0.0/8";

const suite = useGuardedService();
const restart = (more: Record<string, string> = {}) =>
  suite.server.restart({
    ...{ KEYHOLD_AUTH: "admin-token", KEYHOLD_GATEWAYS: "forward-auth" },
    ...more,
  });

let secret: string;
let other: string;
let restricted: string;
beforeAll(async () => {
  const made = await Promise.all([
    ...[issue(suite.rest), issue(suite.rest)],
    issue(suite.rest, { ip_restriction: { allowed_cidrs: [CLIENT, "2001:db8::/64"] } }),
  ]);
  [secret, other, restricted] = made.map((one) => one.secret) as [string, string, string];
});

const ask = async (headers: Fields, more: Asked = {}) => {
  const own = ["X-Keyhold-Authorization", `Bearer ${suite.token("keyhold:verify")}`] as const;
  return (await forwardAuth(suite.server, { ...more, headers: [own, ...headers] })).status;
};

describe.each(["on", "off"])("with the fast path %s", (fastPath) => {
  describe("a credential in a cookie or the query", () => {
    beforeAll(() => restart({ KEYHOLD_FAST_PATH: fastPath, KEYHOLD_GATEWAY_CREDENTIALS: "cookie:key,query:api_key" }));

    const ROWS = table<readonly [string, () => Fields, number]>([
      ["a cookie", () => [["Cookie", `a=b; key=${secret}`]], 200],
      ["a query in X-Forwarded-Uri", () => [["X-Forwarded-Uri", `/a?api_key=${secret}`]], 200],
      ["a query in X-Original-URI", () => [["X-Original-URI", `/a?b=c&api_key=${secret}`]], 200],
      [
        "a query in X-Original-URL, with its origin",
        () => [["X-Original-URL", `https://a.example/?api_key=${secret}`]],
        200,
      ],
      ["the same one in both", () => fields(`Cookie: key=${secret}`, `X-Original-URI: /?api_key=${secret}`), 200],
      ["two cookies", () => [["Cookie", `key=${secret}; key=${other}`]], 400],
      ["two parameters", () => [["X-Original-URI", `/?api_key=${secret}&api_key=${other}`]], 400],
      ["two different ones", () => fields(`Cookie: key=${secret}`, `X-Original-URI: /?api_key=${other}`), 400],
      // The one that the gateway writes, and one that its client has sent.
      ["two URIs", () => fields(`X-Original-URI: /?api_key=${secret}`, `X-Forwarded-Uri: /?api_key=${other}`), 400],
      ["one URI twice, different", () => fields(`X-Original-URI: /?api_key=${secret}`, "X-Original-URI: /"), 400],
      ["places that are not configured", () => fields(`Authorization: Bearer ${secret}`, `X-Api-Key: ${secret}`), 401],
      ["those beside one that is", () => fields(`Authorization: Bearer ${other}`, `Cookie: key=${secret}`), 200],
    ]);
    test.for(ROWS)("%s", async ([, headers, status]) => expect(await ask(headers())).toBe(status));

    test("the query of the endpoint itself is configuration", async () => {
      expect(await ask([], { suffix: `?api_key=${secret}` })).toBe(400);
      expect(await ask([], { suffix: `/a?api_key=${secret}` })).toBe(200);
    });
  });

  test("the query of the endpoint is no audience of a client, whose query some gateways keep", async () => {
    await restart({ KEYHOLD_FAST_PATH: fastPath });
    const { secret } = await issue(suite.rest, { scopes: ["read"] });
    const derivation = { credential: secret, audience: ["billing"], algorithm: "TOKEN_ALGORITHM_JWT" };
    const { token } = (await suite.rest("POST", `${paths.keys}:derive`, derivation)).body.token;
    const given = (suffix: string, uri: string) =>
      ask(fields(`X-Api-Key: ${token}`, `X-Forwarded-Uri: ${uri}`), { suffix });
    expect(await given("?audience=billing", "/?audience=billing")).toBe(400);
    expect(
      await given(
        "?audience=billing&required_scopes=read",
        "https://a.example/a?audience=billing&required_scopes=read",
      ),
    ).toBe(400);
    expect(await given("?audience=billing", "/?audience=")).toBe(200);
    expect(await given("?required_scopes=read", "/?required_scopes=read")).toBe(403);
    expect(
      await ask(fields(`X-Api-Key: ${secret}`, "X-Forwarded-Uri: /?required_scopes=read"), {
        suffix: "?required_scopes=read",
      }),
    ).toBe(200);
  });

  test("by default neither a cookie nor a query counts", async () => {
    await restart({ KEYHOLD_FAST_PATH: fastPath });
    const everywhere: Fields = fields(
      `Cookie: key=${secret}; x-api-key=${secret}`,
      `X-Original-URI: /?x-api-key=${secret}&api_key=${secret}`,
    );
    expect(await ask(everywhere)).toBe(401);
  });

  describe("the address of a client", () => {
    beforeAll(() => restart({ KEYHOLD_FAST_PATH: fastPath, KEYHOLD_TRUSTED_PROXIES: PROXIES }));

    // `client-address.test.ts` has the forms of addresses.
    const ROWS = table<readonly [number, Fields]>([
      [200, fields(`X-Forwarded-For: 192.0.2.1, ${CLIENT}, 10.0.0.1`)],
      [200, fields("X-Forwarded-For: 192.0.2.1", `X-Forwarded-For: ${CLIENT}`)],
      [200, fields("X-Forwarded-For: [2001:DB8::7]:443")],
      [403, []],
      [403, fields(`X-Forwarded-For: ${CLIENT}`, "X-Forwarded-For: 192.0.2.1")],
      [403, fields(`X-Forwarded-For: ${CLIENT}, unknown`)],
      [403, fields(`X-Forwarded-For: ${"a".repeat(8000)}`)],
      // Headers that other servers read.
      ...[
        ...["X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "X-Envoy-External-Address"],
        ...["X_Forwarded_For", "X.Forwarded.For"],
      ].map((name) => [403, fields(`${name}: ${CLIENT}`)] as const),
      [403, fields(`Forwarded: for=${CLIENT}`)],
    ]);
    test.for(ROWS)("%i for %j", async ([status, fields]) => {
      expect(await ask([["X-Api-Key", restricted], ...fields])).toBe(status);
    });
  });

  test("a gateway that is not trusted names no address", async () => {
    await restart({ KEYHOLD_FAST_PATH: fastPath, KEYHOLD_TRUSTED_PROXIES: "127.0.0.9" });
    const headers: Fields = fields(`X-Api-Key: ${restricted}`, `X-Forwarded-For: ${CLIENT}`);
    expect(await ask(headers, { from: "127.0.0.9" })).toBe(200);
    expect(await ask(headers, { from: "127.0.0.1" })).toBe(403);
  });
});
