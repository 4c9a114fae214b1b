import { describe, expect, test } from "vitest";
import { derive, succeeded, table, useService } from "../support/conformance.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

describe("the JWKS", () => {
  test("is a bare RFC 7517 document with public keys only", async () => {
    const answer = await rest("GET", paths.jwks);
    const body = succeeded(answer);
    const base64url = expect.stringMatching(/^[\w-]{43}$/);
    expect(body).toEqual({
      keys: [{ kty: "OKP", crv: "Ed25519", x: base64url, kid: base64url, use: "sig", alg: "EdDSA" }],
    });
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
  });

  test("is the same with parameters, which some libraries add", async () => {
    const [answer, plain] = [await rest("GET", `${paths.jwks}?kid=abc&v=1`), await rest("GET", paths.jwks)];
    expect(succeeded(answer)).toEqual(succeeded(plain));
  });

  test("contains the key of a derived JWT", async () => {
    const { token } = await derive(rest, (await issue(rest)).secret);
    const header = JSON.parse(Buffer.from(token.split(".")[0], "base64url").toString());
    const { keys } = succeeded(await rest("GET", paths.jwks));
    expect(keys.map(({ kid }: Json) => kid)).toContain(header.kid);
  });

  test("is cacheable for a while, and can be revalidated by its ETag", async () => {
    const first = await rest("GET", paths.jwks);
    expect(first.headers.get("cache-control")).toMatch(/^public, max-age=\d+$/);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[^"]+"$/);
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const again = await rest("GET", paths.jwks, undefined, { "if-none-match": known });
      expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", etag]);
      expect(again.headers.get("cache-control")).toBe(first.headers.get("cache-control"));
    }
    const other = await rest("GET", paths.jwks, undefined, { "if-none-match": '"x"' });
    expect([other.status, other.text]).toEqual([200, first.text]);
  });

  test("has the same headers for HEAD, without a body", async () => {
    const [head, get] = [await rest("HEAD", paths.jwks), await rest("GET", paths.jwks)];
    expect([head.status, head.text, head.headers.get("etag")]).toEqual([200, "", get.headers.get("etag")]);
  });
});

describe("health", () => {
  const READY = [
    ["/health/alive", { status: "ok" }],
    ["/health/ready", { status: "ok", checks: { database: "ok", signing_keys: "ok" } }],
  ] as const;

  test.each(table(READY))(
    "%s is 200 with %j and Cache-Control: no-store while the service works",
    async (path, body) => {
      const answer = await rest("GET", path);
      expect(succeeded(answer)).toEqual(body);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      const head = await rest("HEAD", path);
      expect([head.status, head.text]).toEqual([200, ""]);
    },
  );

  test("without a database is alive but not ready, and is ready again with it", async () => {
    const name = new URL(suite.server.databaseUrl).pathname.slice(1);
    await suite.sql.unsafe(`ALTER DATABASE ${name} CONNECTION LIMIT 0`);
    try {
      await suite.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name} AND pid <> pg_backend_pid()`;
      await expect.poll(async () => (await rest("GET", "/health/ready")).status).toBe(503);
      const ready = await rest("GET", "/health/ready");
      expect(ready.body).toEqual({ status: "unavailable", checks: { database: "unavailable", signing_keys: "ok" } });
      expect(succeeded(await rest("GET", "/health/alive"))).toEqual({ status: "ok" });
    } finally {
      await suite.sql.unsafe(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
    }
    await expect.poll(async () => (await rest("GET", "/health/ready")).status, { timeout: 20_000 }).toBe(200);
    expect((await rest("GET", paths.issued)).status).toBe(200);
  });
});
