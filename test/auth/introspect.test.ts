import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { beforeAll, describe, expect, test } from "vitest";
import { table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { basic, basicAsIs, INTROSPECT, introspect } from "../support/introspect.ts";
import { lastRequest } from "../support/log-lines.ts";
import { issue, paths } from "../support/rest.ts";
import { metricsUrl, scrape, total } from "../support/scrape.ts";
import { Secrets } from "../support/secrets.ts";

const suite = useGuardedService(() => ({ KEYHOLD_METRICS_PORT: "0" }));
const RPC = "keyhold.v2alpha1.Introspection/Introspect";

let secret: string;
beforeAll(async () => {
  ({ secret } = await issue(suite.rest, { actor_id: "mine" }));
});

const ask = (headers: Readonly<Record<string, string>>, form: Record<string, string> = {}) =>
  introspect(suite.server, { token: secret, ...form }, headers);
const verifier = () => suite.token("keyhold:verify");
const lastLine = () => lastRequest(suite.server.log());

describe("a caller is authenticated by", () => {
  const CALLERS = table<readonly [string, () => Record<string, string>]>([
    ["a bearer token", () => bearer(verifier())],
    ["a bearer token with a scope that includes keyhold:verify", () => bearer(suite.token("keyhold:admin"))],
    ["a password", () => basic("any name", verifier())],
    ["a password that is not form-encoded", () => basicAsIs("my-service", verifier())],
    ["a password without a name", () => basicAsIs("", verifier())],
    ["a password and a name with a form-encoded colon", () => basic("https://my.service:443/?a=b&c=d", verifier())],
    [
      "a password, the scheme in lower case",
      () => ({ authorization: basicAsIs("a", verifier()).authorization?.replace("Basic", "basic") ?? "" }),
    ],
    [
      "a password that is form-encoded throughout",
      () => basicAsIs("a", [...verifier()].map((one) => `%${one.charCodeAt(0).toString(16)}`).join("")),
    ],
  ]);

  test.for(CALLERS)("%s", async ([, headers]) => {
    expect((await ask(headers())).body).toMatchObject({ active: true, sub: "mine" });
    await expect.poll(lastLine).toMatchObject({
      rpc: RPC,
      protocol: "rest",
      code: "OK",
      verdict: "VALID",
      caller: expect.stringMatching(/^admin-token:/),
    });
  });
});

describe("a caller is refused with", () => {
  const REFUSED = table<readonly [string, () => Record<string, string>, string]>([
    ["no credential", () => ({}), "MISSING"],
    ["an unknown token", () => bearer("kh_v1_nonsense"), "INVALID_FORMAT"],
    ["an unknown password", () => basic("a", "nonsense"), "UNKNOWN_KIND"],
    ["a token as the name", () => basicAsIs(verifier(), ""), "MALFORMED"],
    [
      "a token as the name without a colon",
      () => ({ authorization: `Basic ${Buffer.from(verifier()).toString("base64")}` }),
      "MALFORMED",
    ],
    ["a malformed percent-encoding", () => basicAsIs("a", `${verifier()}%zz`), "MALFORMED"],
    ["a password with a space", () => basicAsIs("a", `${verifier()} a`), "MALFORMED"],
    ["what is not Base64", () => ({ authorization: "Basic a:b" }), "MALFORMED"],
    ["what is not UTF-8", () => ({ authorization: "Basic /zr/" }), "MALFORMED"],
    ["another scheme", () => ({ authorization: `Digest ${verifier()}` }), "MALFORMED"],
    ["a key without scopes", () => bearer(secret), "NOT_PERMITTED"],
    ["a token with another scope", () => basic("a", suite.token("keyhold:keys.read")), "NOT_PERMITTED"],
  ]);

  test.for(REFUSED)("%s", async ([, headers, reason]) => {
    const answer = await ask(headers());
    const isKnown = reason === "NOT_PERMITTED";
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([isKnown ? 403 : 401, "no-store"]);
    const error = isKnown ? "insufficient_scope" : "invalid_client";
    expect(answer.body).toEqual({ error, error_description: expect.stringMatching(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/) });
    expect(answer.headers.get("www-authenticate")).toBe(
      isKnown
        ? 'Bearer realm="keyhold", error="insufficient_scope", scope="keyhold:verify"'
        : 'Basic realm="keyhold", charset="UTF-8", Bearer realm="keyhold"',
    );
    await expect
      .poll(lastLine)
      .toMatchObject({ rpc: RPC, reason, code: isKnown ? "PERMISSION_DENIED" : "UNAUTHENTICATED" });
  });

  test("a secret in the form, which also must not stand beside the header", async () => {
    const form = { client_id: "a", client_secret: verifier() };
    expect(await ask({}, form)).toMatchObject({ status: 401, body: { error: "invalid_client" } });
    expect(await ask(bearer(verifier()), form)).toMatchObject({ status: 400, body: { error: "invalid_request" } });
  });

  test("a challenge in a field of its own for each scheme", async () => {
    const sent = request(suite.server.url + INTROSPECT, { method: "POST" }).end();
    const [response]: IncomingMessage[] = await once(sent, "response");
    const { rawHeaders = [], statusCode } = response ?? {};
    const challenges = rawHeaders.filter((_, place) => rawHeaders[place - 1]?.toLowerCase() === "www-authenticate");
    expect([statusCode, challenges]).toEqual([
      401,
      ['Basic realm="keyhold", charset="UTF-8"', 'Bearer realm="keyhold"'],
    ]);
  });
});

test("no other call accepts the scheme Basic", async () => {
  const headers = { "content-type": "application/json", ...basic("a", suite.token("keyhold:admin")) };
  const body = JSON.stringify({ credential: secret });
  for (const path of [`${paths.keys}:verify`, "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey"]) {
    const response = await fetch(suite.server.url + path, { method: "POST", headers, body });
    expect([path, response.status, response.headers.get("www-authenticate")]).toEqual([
      path,
      401,
      'Bearer realm="keyhold"',
    ]);
  }
});

test("for a caller that is restricted to actors, keys and tokens of others are inactive", async () => {
  const scopes = ["keyhold:verify"];
  const caller = async (actor: string) =>
    bearer((await issue(suite.rest, { scopes, restricted_to_actor_ids: [actor] })).secret);
  expect((await ask(await caller("mine"))).body.active).toBe(true);
  expect((await ask(await caller("other"))).text).toBe('{"active":false}');
});

test("a revoked caller is refused at once", async () => {
  const { secret: token, keyId } = await issue(suite.rest, { scopes: ["keyhold:verify"] });
  expect((await ask(basic("a", token))).body.active).toBe(true);
  await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {});
  expect((await ask(basic("a", token))).status).toBe(401);
});

test("calls, verdicts and refused callers are counted", async () => {
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token", KEYHOLD_METRICS_PORT: "0" });
  const url = metricsUrl(suite.server.log().split("\n").reverse().join("\n"));
  await ask(bearer(verifier()));
  await introspect(suite.server, { token: "unknown" }, bearer(verifier()));
  await ask({});
  const samples = await scrape(url);
  expect(total(samples, "keyhold_requests_total", { rpc: RPC, code: "OK" })).toBe(2);
  expect(total(samples, "keyhold_requests_total", { rpc: RPC, code: "UNAUTHENTICATED" })).toBe(1);
  expect(total(samples, "keyhold_refused_credentials_total", { reason: "MISSING" })).toBe(1);
  expect(total(samples, "keyhold_verdicts_total", { result: "VALID" })).toBe(1);
  expect(total(samples, "keyhold_verdicts_total", { result: "NOT_FOUND" })).toBe(1);
});

test("refused callers are limited, and valid ones from the same address are not", async () => {
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token", KEYHOLD_FAILURE_RATE: "1" });
  const answers = [];
  for (let count = 0; count < 15; count++) answers.push(await ask(basic("a", "nonsense")));
  const limited = answers.find(({ status }) => status !== 401);
  expect(limited).toMatchObject({ status: 429, body: { error: "temporarily_unavailable" } });
  expect(limited?.headers.get("retry-after")).toBe("1");
  expect((await ask(basic("a", verifier()))).body.active).toBe(true);
});

test("without authentication no credential is needed, and none is looked at", async () => {
  await suite.server.restart({ KEYHOLD_AUTH: "none" });
  expect((await ask({})).body.active).toBe(true);
  expect((await ask(basicAsIs("a", "b"))).body.active).toBe(true);
});

test("the log has neither credentials of callers nor tokens", () => {
  const secrets = new Secrets();
  secrets.add(secret, "the token");
  for (const scope of ["keyhold:verify", "keyhold:admin", "keyhold:keys.read"] as const)
    secrets.add(suite.token(scope), scope);
  expect(suite.server.log()).toContain(RPC);
  expect(secrets.foundIn(suite.server.log())).toEqual([]);
});
