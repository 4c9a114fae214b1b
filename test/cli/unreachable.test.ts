import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { shortenUrls } from "../../src/cli/redact.ts";
import { Code, createKeyholdClient } from "../../src/client/index.ts";
import { table } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { type Ended, runKeyhold } from "../support/keyhold.ts";
import { listenLocally } from "../support/listen.ts";
import { metricsUrl } from "../support/scrape.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const TLS = join(import.meta.dirname, "../support/tls");
const CERTIFICATE = join(TLS, "localhost.cert.pem");

let plain: TestServer;
let secure: TestServer;
beforeAll(async () => {
  const tls = { KEYHOLD_TLS_CERT_FILE: CERTIFICATE, KEYHOLD_TLS_KEY_FILE: join(TLS, "localhost.key.pem") };
  [plain, secure] = await Promise.all([startTestServer({ KEYHOLD_METRICS_PORT: "0" }), startTestServer(tls)]);
});
afterAll(() => Promise.all([plain.close(), secure.close()]));

const list = (url: string, environment: Record<string, string> = {}, ...options: string[]): Promise<Ended> =>
  runKeyhold(["keys", "list", "--json", "--url", url, ...options], environment);

/** Returns the error of a command that fails with this status. */
async function failureOf(url: string, code: number, ...options: string[]): Promise<string> {
  const ended = await list(url, {}, ...options);
  expect(ended).toMatchObject({ code, stdout: "" });
  return JSON.parse(ended.stderr).error.message;
}

const at = (server: TestServer, scheme: string) => `${scheme}://localhost:${new URL(server.url).port}`;

const CASES: readonly (readonly [string, () => string | Promise<string>, number, RegExp])[] = [
  [
    "a port without a listener",
    async () => `http://127.0.0.1:${await freePort()}`,
    6,
    / is unreachable: connect ECONNREFUSED 127\.0\.0\.1:\d+$/,
  ],
  [
    "several addresses without a listener",
    async () => `http://localhost:${await freePort()}`,
    6,
    / is unreachable: .*ECONNREFUSED/,
  ],
  ["an unknown name", () => "http://no-such-host.invalid", 6, / is unreachable: getaddrinfo E\w+ no-such/],
  [
    "a certificate that is not trusted",
    () => at(secure, "https"),
    6,
    / is unreachable: self-signed certificate.*; to trust its certificate authority, set --ca-file or NODE_EXTRA_CA_CERTS$/,
  ],
  [
    "https to an http server",
    () => at(plain, "https"),
    6,
    / is unreachable: wrong version number; if the server has no TLS, use http:\/\/$/,
  ],
  [
    "http to an https server",
    () => at(secure, "http"),
    6,
    / is unreachable: other side closed; if the server requires TLS, use https:\/\/$/,
  ],
  [
    "the metrics port",
    () => metricsUrl(plain.log()).replace(/\/metrics$/, ""),
    1,
    / responded with HTTP 404, which is not a Keyhold response; check the URL$/,
  ],
  ["a path below the server", () => `${plain.url}/sub`, 1, / responded with HTTP 404, which is not a Keyhold response/],
];

test.each(table(CASES))("%s: the error names the URL and the cause", async (_, urlOf, code, cause) => {
  const url = await urlOf();
  const message = await failureOf(url, code);
  expect(message.startsWith(`${shortenUrls(url)} `)).toBe(true);
  expect(message).toMatch(cause);
});

/** An HTTP server that is not Keyhold. */
async function foreign(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${await listenLocally(server)}`;
}

test("a timeout names the server", async () => {
  const url = await foreign(() => {});
  const client = createKeyholdClient({ baseUrl: url, timeoutMs: 50, retry: false });
  await expect(client.derivedKeys.getJwks({})).rejects.toMatchObject({
    code: Code.DeadlineExceeded,
    rawMessage: `${url} did not respond in time`,
  });
});

test("a response of another server is an error", async () => {
  const url = await foreign((_request, response) => response.setHeader("content-type", "text/html").end("<p>Hello"));
  expect(await failureOf(url, 1)).toMatch(
    /^http:\S+ responded with HTTP 200 .*text\/html.*, which is not a Keyhold response/,
  );
});

test("a base URL with a password is rejected without quoting it", () => {
  const make = () => createKeyholdClient({ baseUrl: "http://me:secret@127.0.0.1:1" });
  expect(make).toThrow(/^baseUrl: must be an http or https URL without a user or password$/);
});

test.each(table(["--ca-file", "KEYHOLD_CA_FILE", "NODE_EXTRA_CA_CERTS"]))(
  "%s adds trusted certificates",
  async (way) => {
    const url = at(secure, "https");
    const [environment, options] = way.startsWith("--") ? [{}, [way, CERTIFICATE]] : [{ [way]: CERTIFICATE }, []];
    expect(await list(url, environment, ...options)).toMatchObject({ code: 0, stdout: "[]\n", stderr: "" });
  },
);

test("a file without certificates is an error", async () => {
  const missing = join(inject("testDir"), "none.pem");
  expect(await failureOf(at(secure, "https"), 2, "--ca-file", missing)).toBe(
    `--ca-file: ${missing} cannot be read (ENOENT)`,
  );
  const key = join(TLS, "localhost.key.pem");
  expect(await failureOf(at(secure, "https"), 2, "--ca-file", key)).toBe(
    `--ca-file: ${key} contains no certificate in PEM format`,
  );
});
