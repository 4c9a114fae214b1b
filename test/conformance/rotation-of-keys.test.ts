import { randomBytes } from "node:crypto";
import { createLocalJWKSet, jwtVerify } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { toConfig } from "../../src/server/config/config.ts";
import { openResources, type Resources } from "../../src/server/resources.ts";
import { revokeSigningKey } from "../../src/signing/revoke.ts";
import { derive, useService } from "../support/conformance.ts";
import { eventually, runKeyhold } from "../support/keyhold.ts";
import { userOf } from "../support/postgres.ts";
import { issue, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { ROOT_SECRET, startTestServer, type TestServer } from "../support/server.ts";
import { kidOf, publishedKids, rotateUnder, untilPublished } from "../support/signing-keys.ts";

/** The servers poll every 30 s; what happens within this time was caused by a notification. */
const AT_ONCE = 10_000;

const suite = useService({ KEYHOLD_CACHE_SIZE: "0" });
const { rest } = suite;

/** Another server on the same database. */
let secondServer: TestServer | undefined;
const second: RestClient = (...request) => restClient({ url: secondServer?.url ?? "" })(...request);
beforeAll(async () => {
  secondServer = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl });
});
afterAll(() => secondServer?.close());

let secret: string;
/** Creates a new and only signing key, published by both servers. */
let first: string;
beforeEach(async () => {
  ({ secret } = await issue(rest, { scopes: ["read"] }));
  first = await rotateUnder(suite.sql);
  await suite.sql`DELETE FROM signing_keys WHERE retire_time IS NOT NULL`;
  await Promise.all([rest, second].map((client) => untilPublished(client, [first])));
});

const newJwt = async (client: RestClient = rest): Promise<string> => (await derive(client, secret)).token;

function signingKeys(...args: string[]) {
  const environment = {
    KEYHOLD_DATABASE_URL: suite.server.databaseUrl,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_DATABASE_POOL_SIZE: "1",
  };
  return runKeyhold(["signing-keys", ...args], environment);
}

describe("a rotation of the signing key", () => {
  test("reaches every running server without a restart", { timeout: AT_ONCE }, async () => {
    const before = await newJwt();
    const kid = await rotateUnder(suite.sql);
    for (const client of [rest, second]) {
      await untilPublished(client, [kid, first]);
      expect(kidOf(await newJwt(client))).toBe(kid);
      expect(await verify(client, before)).toMatchObject({ is_valid: true, credential_type: "CREDENTIAL_TYPE_JWT" });
    }
  });

  test("by the command reaches every server, and the command prints the new kid", async () => {
    await newJwt();
    const { code, stdout, stderr } = await signingKeys("rotate");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    await untilPublished(rest, [stdout.trim(), first]);
    const { stdout: listed } = await signingKeys("list");
    expect(listed.split("\n").map((line) => line.split(" ")[0])).toEqual([stdout.trim(), first, ""]);
  });

  test("allows other libraries to verify old and new tokens", async () => {
    const before = await newJwt();
    const kid = await rotateUnder(suite.sql);
    await untilPublished(rest, [kid, first]);
    const keys = createLocalJWKSet((await rest("GET", paths.jwks)).body);
    for (const token of [before, await newJwt()]) {
      const { payload } = await jwtVerify(token, keys, { issuer: "keyhold", algorithms: ["EdDSA"] });
      expect(payload).toMatchObject({ sub: "actor_1", scope: "read" });
    }
  });

  test("drops a key that has signed nothing", async () => {
    const kid = await rotateUnder(suite.sql);
    await untilPublished(rest, [kid]);
  });

  test("twice keeps all keys with valid tokens, the newest first", async () => {
    const tokens = [await newJwt()];
    const kids = [first];
    for (let round = 0; round < 2; round++) {
      kids.unshift(await rotateUnder(suite.sql));
      await untilPublished(rest, kids);
      tokens.push(await newJwt());
    }
    for (const token of tokens) expect(await verify(second, token)).toMatchObject({ is_valid: true });
    expect(new Set(tokens.map(kidOf))).toEqual(new Set(kids));
  });
});

describe("a retired key", () => {
  test("leaves the JWKS when the last token that it signed has expired", async () => {
    const before = await newJwt();
    const kid = await rotateUnder(suite.sql);
    await untilPublished(rest, [kid, first]);
    const { count } = await suite.sql`
      UPDATE signing_keys SET tokens_expire_time = now() - interval '1 second' WHERE kid = ${first}`;
    expect(count).toBe(1);
    for (const client of [rest, second]) {
      await untilPublished(client, [kid]);
      const verdict = await verify(client, before);
      expect(verdict).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_SIGNATURE_INVALID" });
    }
  });

  test("stays until its last token expires", async () => {
    const { expire_time } = await derive(rest, secret, { ttl: "90d" });
    await derive(second, secret, { ttl: "1h" });
    await rotateUnder(suite.sql);
    const [row] = await suite.sql`SELECT tokens_expire_time FROM signing_keys WHERE kid = ${first}`;
    expect(row?.tokens_expire_time.getTime()).toBeGreaterThanOrEqual(Date.parse(expire_time));
  });
});

/** Opens the database like a command. */
async function openCommand(environment: Record<string, string>): Promise<Resources & AsyncDisposable> {
  const resources = await openResources(toConfig(environment), { log: () => {}, ifRunning: "attach" });
  return { ...resources, [Symbol.asyncDispose]: resources.close };
}

describe("a revocation of a signing key", () => {
  const refused = { is_valid: false, error_code: "VERIFICATION_ERROR_SIGNATURE_INVALID" };

  test("by a kid that begins with a hyphen, as one in 64 does", async () => {
    const { stderr } = await signingKeys("revoke", `-e${"A".repeat(41)}`, "--json");
    expect(JSON.parse(stderr).error.message).toContain("does not exist or is already revoked");
  });

  test("by the command: at its return no server accepts its tokens or publishes it", async () => {
    const tokens = await Promise.all([rest, second].map((client) => newJwt(client)));
    const kid = await rotateUnder(suite.sql);
    await Promise.all([rest, second].map((client) => untilPublished(client, [kid, first])));
    const later = await newJwt(second);
    // Cached by both.
    for (const client of [rest, second]) await Promise.all([...tokens, later].map((token) => verify(client, token)));
    const { code, stdout, stderr } = await signingKeys("revoke", first);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `Revoked ${first}.\n`, stderr: "" });
    for (const client of [rest, second]) {
      for (const token of tokens) expect(await verify(client, token)).toMatchObject(refused);
      expect(await publishedKids(client)).toEqual([kid]);
      expect(await verify(client, later)).toMatchObject({ is_valid: true });
    }
    const { stdout: json } = await signingKeys("revoke", kid, "--json");
    const { active } = JSON.parse(json);
    expect(JSON.parse(json)).toEqual({ kid, active: expect.stringMatching(/^[\w-]{43}$/) });
    for (const client of [rest, second]) {
      expect(await verify(client, later)).toMatchObject(refused);
      expect(await publishedKids(client)).toEqual([active]);
      expect(kidOf(await newJwt(client))).toBe(active);
    }
    const again = await signingKeys("revoke", kid);
    expect(again).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("signing key … does not exist or is already revoked"),
    });
  });

  test("takes effect at its return while tokens of the key are derived and verified all the time", async () => {
    const environment = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
    await using command = await openCommand(environment);
    const seen: { kid: string; began: number }[] = [];
    const revoked = new Map<string, number>();
    let isOver = false;
    const use = async (client: RestClient, other: RestClient) => {
      for (let token = ""; !isOver; ) {
        if (token === "" || revoked.has(kidOf(token))) token = await newJwt(client);
        const began = performance.now();
        if ((await verify(other, token)).is_valid) seen.push({ kid: kidOf(token), began });
      }
    };
    const users = [use(rest, second), use(second, rest), use(rest, rest), use(second, second)];
    for (let round = 0; round < 5; round++) {
      const [active = ""] = await publishedKids(rest);
      const count = seen.length;
      await eventually(async () => seen.length > count + 5);
      await revokeSigningKey(command.signing, active);
      revoked.set(active, performance.now());
    }
    isOver = true;
    await Promise.all(users);
    expect(seen.filter(({ kid, began }) => (revoked.get(kid) ?? Number.POSITIVE_INFINITY) < began)).toEqual([]);
    expect(new Set(seen.map(({ kid }) => kid)).size).toBeGreaterThan(3);
  });
});

describe("when the notification of a rotation is lost", () => {
  let informed: TestServer;
  let kid: string;
  beforeEach(async () => {
    kid = await rotateUnder(suite.sql, { quietly: true });
    informed = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl });
    expect(await publishedKids(rest)).toEqual([first]);
    return () => informed.close();
  });

  test("a server that missed it verifies a token of the new key at once", async () => {
    const token = await newJwt(restClient(informed));
    expect(kidOf(token)).toBe(kid);
    expect(await verify(rest, token)).toMatchObject({ is_valid: true });
    expect(await publishedKids(rest)).toEqual([kid]);
  });

  test("a server that missed it may sign with the old key, and the others verify its tokens at once", async () => {
    expect(await publishedKids(restClient(informed))).toEqual([kid]);
    const token = await newJwt(rest);
    expect(kidOf(token)).toBe(first);
    expect(await verify(restClient(informed), token)).toMatchObject({ is_valid: true });
    expect(await publishedKids(restClient(informed))).toEqual([kid, first]);
  });
});

describe("tokens with an unknown kid", () => {
  /** The token with another kid; its invalid signature is not checked without a key. */
  const withKid = (token: string, kid: string) => {
    const header = Buffer.from(JSON.stringify({ alg: "EdDSA", typ: "JWT", kid })).toString("base64url");
    return [header, ...token.split(".").slice(1)].join(".");
  };
  const newKid = () => randomBytes(32).toString("base64url");
  const refused = { is_valid: false, error_code: "VERIFICATION_ERROR_SIGNATURE_INVALID" };

  test("soon cause no more database reads, and a new key is still found at once", async () => {
    const token = await newJwt();
    const repeated = newKid();
    for (const kid of [repeated, ...Array.from({ length: 20 }, newKid)])
      expect(await verify(rest, withKid(token, kid))).toMatchObject(refused);
    const role = userOf(suite.server.databaseUrl);
    const isKnown = async () => {
      await suite.sql.unsafe(`REVOKE SELECT ON signing_keys FROM ${role}`);
      try {
        for (let i = 0; i < 20; i++) expect(await verify(rest, withKid(token, repeated))).toMatchObject(refused);
        return true;
      } catch {
        return false;
      } finally {
        await suite.sql.unsafe(`GRANT SELECT ON signing_keys TO ${role}`);
      }
    };
    // A server that has lost its lease, as on a busy machine, reads the keys again.
    await eventually(async () => {
      expect(await verify(rest, withKid(token, repeated))).toMatchObject(refused);
      return isKnown();
    });
    const kid = await rotateUnder(suite.sql);
    await untilPublished(second, [kid, first]);
    const later = await newJwt(second);
    expect(kidOf(later)).toBe(kid);
    expect(await verify(rest, later)).toMatchObject({ is_valid: true });
  });
});

describe("the ETag of the JWKS", () => {
  const get = (client: RestClient, known?: string) =>
    client("GET", paths.jwks, undefined, known === undefined ? {} : { "if-none-match": known });

  test("is the same on every server, and answers 304 to clients that send it", async () => {
    const [etag, other] = (await Promise.all([get(rest), get(second)])).map(({ headers }) => headers.get("etag") ?? "");
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    expect(other).toBe(etag);
    const { status, text, headers } = await get(second, etag);
    expect({ status, text, etag: headers.get("etag") }).toEqual({ status: 304, text: "", etag });
    expect(headers.get("cache-control")).toBe("public, max-age=300");
  });

  test("changes after a rotation, so that caches drop the old document", async () => {
    const before = (await get(rest)).headers.get("etag") ?? "";
    const kid = await rotateUnder(suite.sql);
    await untilPublished(rest, [kid]);
    const { status, body, headers } = await get(rest, before);
    expect(status).toBe(200);
    expect(headers.get("etag")).not.toBe(before);
    expect(body.keys[0].kid).toBe(kid);
  });
});
