import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LookupAddress, LookupOptions } from "node:dns";
import { createServer, isIP, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type AddressPolicy, checkedLookup, checkWebhookUrl } from "../../../src/webhooks/sending/address-policy.ts";
import { webhookSender } from "../../../src/webhooks/sending/sender.ts";
import { listenLocally } from "../../support/listen.ts";

const PUBLIC_ONLY: AddressPolicy = { allowedCidrs: [], proxy: null };
/** As if there was no check. */
const EVERYTHING: AddressPolicy = { allowedCidrs: ["0.0.0.0/0", "::/0"], proxy: null };

/** Hosts of URLs that are the loopback address of the listener, or connect to it. */
const LOOPBACK: Readonly<Record<string, readonly string[]>> = {
  decimal: ["127.0.0.1", "2130706433", "127.0.0.1."],
  hexadecimal: ["0x7f000001", "0x7f.0x0.0x0.0x1", "0X7F.1"],
  octal: ["017700000001", "0177.0.0.01", "0177.1"],
  short: ["127.1", "127.0.1"],
  "percent-encoded and full-width": ["%31%32%37.0.0.1", "１２７.0.0.1", "127。0。0。1"],
  unspecified: ["0.0.0.0", "0", "0x0"],
  IPv6: ["[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]"],
  "IPv4-mapped": ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]"],
};

const LOOPBACK_NAMES = ["localhost", "LOCALHOST", "localhost.", "hooks.localhost", "a.b.localhost."];

/** Other hosts of URLs that are special addresses. */
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  "rest of loopback": ["127.0.0.2", "127.255.255.254"],
  "this network": ["0.0.0.1", "0.255.255.255"],
  private: ["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "0300.0250.1", "3232235521"],
  "shared, carrier-grade NAT": ["100.64.0.1", "100.127.255.255"],
  "link-local": ["169.254.0.1", "169.254.255.255", "[fe80::1]", "[febf::1]"],
  "metadata services": [
    ...["169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "169.254.170.2"],
    ...["100.100.100.200", "192.0.0.192", "168.63.129.16", "[fd00:ec2::254]", "[fd20:ce::254]"],
    "[::ffff:169.254.169.254]",
  ],
  "protocol assignments": ["192.0.0.1", "192.0.0.255", "192.88.99.1", "[2001::]", "[2001:1::1]", "[2001:1ff:ffff::]"],
  documentation: ["192.0.2.1", "198.51.100.1", "203.0.113.255", "[2001:db8::1]", "[2001:db8:ffff::]", "[3fff:fff::1]"],
  benchmarks: ["198.18.0.1", "198.19.255.255", "[2001:2::1]"],
  "multicast and reserved": ["224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "[ff02::1]", "[ff0e::1]"],
  "unique local": ["[fc00::1]", "[fdff:ffff::1]"],
  "site-local": ["[fec0::1]"],
  "IPv4-compatible": ["[::127.0.0.1]", "[::10.0.0.1]", "[::8.8.8.8]"],
  "IPv4-translated": ["[::ffff:0:127.0.0.1]"],
  NAT64: [
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a00:1]",
    "[64:ff9b::8.8.8.8]",
    "[64:ff9b:1::10.0.0.1]",
    "[64:ff9b:1:fffe::1]",
  ],
  "6to4": ["[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2002:808:808::]"],
  Teredo: ["[2001:0:7f00:1::]", "[2001::5601:5601]"],
  "discard-only, segment routing": ["[100::1]", "[5f00::1]"],
};

const HOSTS = [...Object.entries(LOOPBACK), ...Object.entries(ADDRESSES)].flatMap(([kind, hosts]) =>
  hosts.map((host) => [kind, host] as const),
);

/** The addresses as answers to a DNS query: each canonical form once, and some that only resolvers write. */
const ANSWERS = [
  ...new Set(HOSTS.map(([, host]) => new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, ""))),
  ...["fe80::1%lo", "::FFFF:127.0.0.1", "::ffff:a9fe:a9fe"],
];

/** No connection is made to these: only the check is asked. */
const PUBLIC = [
  ...["1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"],
  ...["128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0"],
  ...[
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.101.0",
    "203.0.114.0",
    "223.255.255.255",
  ],
  ...["[2001:200::1]", "[2606:4700::1111]", "[2a00:1450::1]", "[2003::1]", "[2001:db9::1]", "[3ffe::1]"],
];

let port = 0;
let connections = 0;
/** Addresses to which this process has tried to connect. */
let attempts: string[] = [];
const listeners = ["127.0.0.1", "::1"].map(() =>
  createServer((socket) => {
    connections++;
    socket.destroy();
  }),
);

/** Node reports each client socket on this channel. */
const onSocket = (message: unknown) =>
  (message as { socket: Socket }).socket.on("connectionAttempt", (address: string) => attempts.push(address));

beforeAll(async () => {
  const [ipv4, ipv6] = listeners;
  if (ipv4 === undefined || ipv6 === undefined) throw new Error("no listeners");
  port = await listenLocally(ipv4);
  await new Promise<void>((resolve) => ipv6.listen(port, "::1", resolve));
  subscribe("net.client.socket", onSocket);
});

beforeEach(() => {
  connections = 0;
  attempts = [];
});

afterAll(() => {
  unsubscribe("net.client.socket", onSocket);
  for (const listener of listeners) listener.close();
});

const answersOf = (addresses: readonly string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: isIP(address) }));

/** A resolver whose answer to each query is the next of these, and then the last. */
function resolverOf(...answers: readonly (readonly string[])[]) {
  const queries: string[] = [];
  const resolve = (name: string, _: LookupOptions, callback: (error: null, addresses: LookupAddress[]) => void) => {
    const answer = answers[Math.min(queries.length, answers.length - 1)] ?? [];
    queries.push(name);
    setImmediate(callback, null, answersOf(answer));
  };
  return { queries, resolve: resolve as unknown as NonNullable<Parameters<typeof checkedLookup>[2]> };
}

async function sendTo(url: string, policy: AddressPolicy, resolver = resolverOf(["127.0.0.1"])) {
  const { resolve } = resolver;
  const request = { url, id: "msg_1", body: "{}", secrets: [Buffer.alloc(32, 1)] };
  return webhookSender(policy, { resolve, timeout: 5_000 }).send(request, AbortSignal.timeout(5_000));
}

const urlsOf = (host: string) => ["https", "http"].map((scheme) => `${scheme}://${host}:${port}/hook`);

describe("an address in a URL", () => {
  test.each(HOSTS)("%s: %s is rejected when an endpoint is created", (_, host) => {
    for (const url of urlsOf(host)) {
      const error = expect.objectContaining({ code: "INVALID_ARGUMENT" });
      expect(() => checkWebhookUrl(url, PUBLIC_ONLY)).toThrow(error);
      expect(() => checkWebhookUrl(url, { ...PUBLIC_ONLY, proxy: "http://127.0.0.1:1" })).toThrow(error);
      // It is the address that is rejected.
      expect(() => checkWebhookUrl(url, EVERYTHING)).not.toThrow();
    }
  });

  test.each(HOSTS)("%s: %s is not connected to", async (_, host) => {
    for (const url of urlsOf(host))
      expect(await sendTo(url, PUBLIC_ONLY)).toMatchObject({
        status: null,
        error: expect.stringMatching(/ALLOW_CIDRS/),
      });
    expect({ attempts, connections }).toEqual({ attempts: [], connections: 0 });
  });

  test.each(LOOPBACK_NAMES)("%s is loopback", async (name) => {
    for (const url of urlsOf(name)) {
      expect(() => checkWebhookUrl(url, PUBLIC_ONLY)).toThrow("KEYHOLD_WEBHOOK_ALLOW_CIDRS");
      await sendTo(url, PUBLIC_ONLY);
    }
    expect({ attempts, connections }).toEqual({ attempts: [], connections: 0 });
    await sendTo(`http://${name}:${port}`, EVERYTHING);
    expect({ attempts, connections }).toEqual({ attempts: ["127.0.0.1"], connections: 1 });
  });

  test.each(Object.values(LOOPBACK).flat())("%s would reach the listener without the check", async (host) => {
    await sendTo(`http://${host}:${port}`, EVERYTHING);
    expect({ attempts: attempts.length, connections }).toEqual({ attempts: 1, connections: 1 });
  });

  test.each(PUBLIC)("%s is allowed over https only", (host) => {
    expect(() => checkWebhookUrl(`https://${host}/hook`, PUBLIC_ONLY)).not.toThrow();
    expect(() => checkWebhookUrl(`http://${host}/hook`, PUBLIC_ONLY)).toThrow("not allowed over http");
  });
});

describe("a name", () => {
  /** Calls the resolution of a connection. */
  const lookup = (protocol: string, policy: AddressPolicy, answer: readonly string[]) =>
    new Promise((resolve, reject) =>
      checkedLookup(protocol, policy, resolverOf(answer).resolve)("hooks.example.com", {}, (error, addresses) =>
        error === null ? resolve(addresses) : reject(error),
      ),
    );

  test.each(ANSWERS)("with the address %s is not connected to", async (address) => {
    for (const answer of [[address], ["1.1.1.1", address], [address, "2606:4700::1111"]]) {
      const outcome = await sendTo(`https://hooks.example.com:${port}`, PUBLIC_ONLY, resolverOf(answer));
      expect(outcome).toMatchObject({
        status: null,
        error: expect.stringMatching(/^the host has an address that is not/),
      });
      // The addresses of internal names are not revealed.
      expect(outcome.error).not.toContain(address);
    }
    expect({ attempts, connections }).toEqual({ attempts: [], connections: 0 });
    if (!address.includes("%")) expect(await lookup("https:", EVERYTHING, [address])).toEqual(answersOf([address]));
  });

  test.each(PUBLIC)("with the public address %s is allowed over https only", async (host) => {
    const address = host.replace(/^\[|\]$/g, "");
    expect(await lookup("https:", PUBLIC_ONLY, [address, "1.1.1.1"])).toEqual(answersOf([address, "1.1.1.1"]));
    await expect(lookup("http:", PUBLIC_ONLY, [address])).rejects.toThrow("not allowed over http");
  });

  test("is resolved once: a different answer to a second query has no effect", async () => {
    const rebinding = resolverOf(["127.0.0.2"], ["127.0.0.1"]);
    await sendTo(`http://hooks.example.com:${port}`, { allowedCidrs: ["127.0.0.2/32"], proxy: null }, rebinding);
    expect(rebinding.queries).toEqual(["hooks.example.com"]);
    expect({ attempts, connections }).toEqual({ attempts: ["127.0.0.2"], connections: 0 });
  });

  test("is checked in each attempt", async () => {
    const resolver = resolverOf(["127.0.0.2"], ["127.0.0.1"]);
    const url = `http://hooks.example.com:${port}`;
    const outcomes = [];
    for (const _ of [1, 2]) outcomes.push(await sendTo(url, { allowedCidrs: ["127.0.0.2/32"], proxy: null }, resolver));
    expect(outcomes[0]?.error).toBe("request failed: ECONNREFUSED");
    expect(outcomes[1]?.error).toMatch(/not allowed over http/);
    expect({ attempts, connections }).toEqual({ attempts: ["127.0.0.2"], connections: 0 });
  });
});

describe("an allowed network", () => {
  const policy: AddressPolicy = { allowedCidrs: ["127.0.0.1/32", "fd00::/8"], proxy: null };

  test.each(["https://127.0.0.1", "http://127.0.0.1", "http://0x7f.1", "http://[::ffff:7f00:1]", "http://[fd00::1]"])(
    "permits %s",
    (url) => expect(() => checkWebhookUrl(url, policy)).not.toThrow(),
  );

  test.each(["http://127.0.0.2", "https://10.0.0.1", "http://[::1]", "http://1.1.1.1"])("does not permit %s", (url) =>
    expect(() => checkWebhookUrl(url, policy)).toThrow("KEYHOLD_WEBHOOK_ALLOW_CIDRS"),
  );

  test("is needed for every address of a name", async () => {
    const url = `http://hooks.example.com:${port}`;
    await sendTo(url, policy, resolverOf(["127.0.0.1", "1.1.1.1"]));
    await sendTo(url, policy, resolverOf(["127.0.0.1", "::1"]));
    expect({ attempts, connections }).toEqual({ attempts: [], connections: 0 });
    await sendTo(url, policy, resolverOf(["127.0.0.1"]));
    expect({ attempts, connections }).toEqual({ attempts: ["127.0.0.1"], connections: 1 });
  });
});

const NOT_URLS = ["", "hooks.example.com", "//hooks.example.com", "ftp://hooks.example.com", "file:///etc/passwd"];

describe("a URL is rejected", () => {
  test.each([...NOT_URLS, "gopher://127.0.0.1", "https://", "https://[::1%25lo]/", "https://256.1.1.1"])("%s", (url) =>
    expect(() => checkWebhookUrl(url, EVERYTHING, "webhook_endpoint.url")).toThrow(
      expect.objectContaining({
        violations: [expect.objectContaining({ field: "webhook_endpoint.url", reason: "INVALID_FORMAT" })],
      }),
    ),
  );

  test.each(["https://user@hooks.example.com", "https://:secret@hooks.example.com"])("%s", (url) =>
    expect(() => checkWebhookUrl(url, EVERYTHING)).toThrow("must not contain a user or password"),
  );

  test("a name over http, if no network is allowed or the proxy resolves it", () => {
    const url = "http://hooks.example.com";
    expect(() => checkWebhookUrl(url, PUBLIC_ONLY)).toThrow("http requires KEYHOLD_WEBHOOK_ALLOW_CIDRS");
    expect(() => checkWebhookUrl(url, { ...EVERYTHING, proxy: "http://127.0.0.1:1" })).toThrow("KEYHOLD_WEBHOOK_PROXY");
    expect(() => checkWebhookUrl(url, { allowedCidrs: ["10.0.0.0/8"], proxy: null })).not.toThrow();
  });
});
