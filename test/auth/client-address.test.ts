import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { linesOf } from "../support/log-lines.ts";
import { openProtocols } from "../support/protocols/protocols.ts";
import { issue, type Json, paths } from "../support/rest.ts";

/** The minimum, so that a few calls exceed it. */
const RATE = 1;
const BURST = 10 * RATE;

const PROXY = "127.0.0.1";
const STRANGER = "127.0.0.9";
const ENVIRONMENT = {
  KEYHOLD_AUTH: "admin-token",
  KEYHOLD_TRUSTED_PROXIES: `${PROXY}, 10.0.0.0/8, fd00::/8`,
};

const suite = useGuardedService(() => ENVIRONMENT);

/** Admin tokens by the addresses that may use them. */
let tokens: { remote: string; local: string };

beforeAll(async () => {
  const restricted = async (...allowed_cidrs: string[]) => {
    const fields = { scopes: ["keyhold:verify", "keyhold:keys.read"], ip_restriction: { allowed_cidrs } };
    return (await issue(suite.rest, fields)).secret;
  };
  tokens = { remote: await restricted("203.0.113.0/24", "2001:db8::/32"), local: await restricted("127.0.0.0/8") };
});

type Field = readonly [name: string, value: string];

interface Sent {
  readonly peer?: string;
  readonly url?: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body: string;
  readonly fields: readonly Field[];
}

type Send = (sent: Sent) => Promise<{ status: number; body: Json }>;

const http1: Send = async ({ peer = PROXY, url = suite.server.url, method, path, body, fields }) => {
  const length: Field[] = body === "" ? [] : [["content-length", String(body.length)]];
  const headers = [["host", "localhost"], ["content-type", "application/json"], ...length, ...fields].flat();
  const outgoing = request(url + path, { method, localAddress: peer, agent: false, headers });
  outgoing.end(body);
  const [response]: IncomingMessage[] = await once(outgoing, "response");
  if (response === undefined) throw new Error("no response");
  return { status: response.statusCode ?? 0, body: JSON.parse(await text(response)) };
};

const http2: Send = async ({ peer = PROXY, url = suite.server.url, method, path, body, fields }) => {
  const { hostname, port } = new URL(url);
  const createConnection = () => connectTcp({ host: hostname, port: Number(port), localAddress: peer });
  const session = connect(url, { createConnection });
  try {
    const headers = [":method", method, ":path", path, ":authority", "localhost", "content-type", "application/json"];
    // As a list, because a name may occur more than once.
    const stream = session.request([...headers, ...fields.flat()], { endStream: body === "" });
    if (body !== "") stream.end(body);
    const [[response], answer] = await Promise.all([once(stream, "response"), text(stream)]);
    return { status: Number(response[":status"]), body: JSON.parse(answer) };
  } finally {
    session.destroy();
  }
};

const VERIFY = { method: "POST", path: `${paths.keys}:verify`, body: '{"credential":"x"}' } as const;
const LIST = { method: "GET", path: paths.issued, body: "" } as const;

const TRANSPORTS = table([
  ["HTTP/1.1, fast path", http1, VERIFY],
  ["HTTP/1.1", http1, LIST],
  ["HTTP/2, fast path", http2, VERIFY],
  ["HTTP/2", http2, LIST],
] as const);

const forwarded = (...values: string[]): Field[] => values.map((value) => ["X-Forwarded-For", value]);

/** That each transport passes peer and header on; `test/lib/client-address.test.ts` has every form of the header. */
const CALLS = table([
  ["a proxy's client", "remote", PROXY, forwarded("203.0.113.7"), true],
  ["a chain of proxies", "remote", PROXY, forwarded("192.0.2.1, 203.0.113.7,10.0.0.2, fd00::2"), true],
  ["a chain in several fields", "remote", PROXY, forwarded("192.0.2.1", "203.0.113.7", "10.0.0.2"), true],
  ["another client", "remote", PROXY, forwarded("192.0.2.1"), false],
  ["a client that adds the address", "remote", PROXY, forwarded("203.0.113.7, 192.0.2.1"), false],
  ["a client that adds a field", "remote", PROXY, forwarded("203.0.113.7", "192.0.2.1"), false],
  ["a stranger that claims to be a proxy", "remote", STRANGER, forwarded("203.0.113.7"), false],
  ["the proxy itself", "remote", PROXY, [], false],
  ["an unknown client", "remote", PROXY, forwarded("203.0.113.7, unknown"), false],
  ["another header", "remote", PROXY, [["Forwarded", "for=203.0.113.7"]], false],
  ["another header of nginx", "remote", PROXY, [["X-Real-IP", "203.0.113.7"]], false],
  ["the proxy itself, at home", "local", PROXY, [], true],
  ["a stranger, at home", "local", STRANGER, forwarded("203.0.113.7"), true],
  ["an unknown client of a proxy at home", "local", PROXY, forwarded("unknown"), false],
] as const);

describe.each(TRANSPORTS)("over %s an admin token with ip_restriction", (_, send, call) => {
  test.each(CALLS)("from %s (%s)", async (_, token, peer, fields, isAllowed) => {
    const credential: Field = ["authorization", `Bearer ${tokens[token]}`];
    const { status, body } = await send({ ...call, peer, fields: [credential, ...fields] });
    expect({ status, message: body.error?.message }).toEqual(
      isAllowed ? { status: 200, message: undefined } : { status: 401, message: "the admin token is not valid" },
    );
  });
});

test("over every protocol an admin token is accepted from its addresses only", async () => {
  for (const { name, call, close } of openProtocols(suite.server)) {
    const verified = (address: string) => {
      const headers = { ...bearer(tokens.remote), "x-forwarded-for": address };
      return call(ApiKeysService.method.verifyApiKey, { credential: "x" }, headers);
    };
    expect(await verified("203.0.113.7"), name).toMatchObject({ ok: true });
    expect(await verified("192.0.2.1"), name).toMatchObject({ ok: false, code: "UNAUTHENTICATED" });
    close();
  }
});

test("an admin token from another address is refused as an unknown one is", async () => {
  const ip_restriction = { allowed_cidrs: ["192.0.2.0/24"] };
  const make = () => issue(suite.rest, { scopes: ["keyhold:keys.read"], ip_restriction });
  const [elsewhere, unknown] = [await make(), await make()];
  await suite.sql`DELETE FROM api_keys WHERE key_id = ${unknown.keyId}`;
  const from = { "x-forwarded-for": "203.0.113.7" };
  const [first, second] = await Promise.all(
    [elsewhere, unknown].map(async ({ secret }) => {
      const { status, headers, body } = await suite.as(secret)("GET", paths.issued, undefined, from);
      const { date: _date, "x-request-id": _id, ...others } = Object.fromEntries(headers);
      return { status, body, others };
    }),
  );
  expect(first?.status).toBe(401);
  expect(first).toEqual(second);
});

test("a change of the restriction counts from the next call on", async () => {
  const ip_restriction = { allowed_cidrs: ["192.0.2.0/24"] };
  const { keyId, secret } = await issue(suite.rest, { scopes: ["keyhold:keys.read"], ip_restriction });
  const list = async () =>
    (await suite.as(secret)("GET", paths.issued, undefined, { "x-forwarded-for": "192.0.2.1" })).status;
  expect(await list()).toBe(200);
  const restrict = (allowed_cidrs: string[]) =>
    suite.rest("PATCH", `${paths.issued}/${keyId}?update_mask=ip_restriction`, { ip_restriction: { allowed_cidrs } });
  expect((await restrict(["192.0.2.128/25"])).status).toBe(200);
  expect(await list()).toBe(401);
  expect((await restrict(["192.0.2.0/25"])).status).toBe(200);
  expect(await list()).toBe(200);
});

test("on a socket for both families, a proxy and a client are known by their IPv4 addresses", async () => {
  await suite.server.restart({ ...ENVIRONMENT, KEYHOLD_HOST: "::" });
  const url = `http://127.0.0.1:${new URL(suite.server.url).port}`;
  for (const [send, call] of TRANSPORTS.map(([, send, call]) => [send, call] as const)) {
    const statusOf = async (token: "remote" | "local", peer: string, fields: Field[]) =>
      (await send({ ...call, url, peer, fields: [["authorization", `Bearer ${tokens[token]}`], ...fields] })).status;
    expect(await statusOf("remote", PROXY, forwarded("203.0.113.7"))).toBe(200);
    expect(await statusOf("remote", STRANGER, forwarded("203.0.113.7"))).toBe(401);
    expect(await statusOf("local", STRANGER, [])).toBe(200);
  }
});

describe("behind a trusted proxy", () => {
  beforeAll(async () => {
    const rates = { KEYHOLD_PUBLIC_RATE: String(RATE), KEYHOLD_FAILURE_RATE: String(RATE) };
    await suite.server.restart({ ...ENVIRONMENT, ...rates });
  });

  /** So many that the bucket, which is refilled by one call per second, is empty even if they take half a minute. */
  const MANY = BURST + 30;

  const PUBLIC = { method: "GET", path: paths.jwks, body: "" } as const;

  test.each([
    ["public calls", PUBLIC, 200],
    ["rejected credentials", LIST, 401],
  ] as const)("%s are limited by the client, whatever it adds to the header", async (_, call, usual) => {
    const statusesOf = (fieldsOf: (count: number) => Field[], peer = PROXY) =>
      Promise.all(
        Array.from(
          { length: MANY },
          async (_, count) => (await http1({ ...call, peer, fields: fieldsOf(count) })).status,
        ),
      );
    const first = await statusesOf((count) => forwarded(`198.51.100.${count}, 192.0.2.1`));
    expect([...new Set(first)].sort()).toEqual([usual, 429].sort());
    const stranger = await statusesOf((count) => forwarded(`198.51.100.${count}`), STRANGER);
    expect(stranger).toContain(429);
    const other = await Promise.all(
      Array.from({ length: BURST }, async (_, count) => {
        return (await http1({ ...call, fields: forwarded(`192.0.2.${10 + count}`) })).status;
      }),
    );
    expect(other).toEqual(Array(BURST).fill(usual));
  });

  test("a token from elsewhere is logged with its key and the reason", async () => {
    const fields = [
      ["x-request-id", "from-elsewhere"],
      ["authorization", `Bearer ${tokens.remote}`],
    ] as const;
    await http1({ ...LIST, fields: [...fields, ...forwarded("192.0.2.78")] });
    const lineOf = () =>
      linesOf(suite.server.log()).find(({ reqId, msg }) => reqId === "from-elsewhere" && msg === "request");
    const refused_key_id = expect.stringMatching(/^[\da-f-]{36}$/);
    await expect
      .poll(lineOf, { timeout: 30_000 })
      .toMatchObject({ reason: "IP_NOT_ALLOWED", peer: "192.0.2.78", refused_key_id });
  });

  test.each([
    [forwarded("198.51.100.1, 192.0.2.77"), "192.0.2.77"],
    [forwarded("192.0.2.1, unknown"), "unknown"],
    [[], PROXY],
  ])("the log names the client: %j", async (fields, peer) => {
    const id = `client-address-${peer}`;
    await http1({ ...LIST, fields: [...fields, ["x-request-id", id], ["authorization", "Bearer x"]] });
    const lineOf = () => linesOf(suite.server.log()).find(({ reqId, msg }) => reqId === id && msg === "request");
    await expect.poll(lineOf, { timeout: 30_000 }).toMatchObject({ reason: "UNKNOWN_KIND", peer });
  });
});
