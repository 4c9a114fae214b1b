import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { derive, useService } from "../support/conformance.ts";
import { issue } from "../support/rest.ts";
import { readPage } from "./blocks.ts";

const suite = useService();

let url: string;
let stop: () => Promise<void>;
beforeAll(async () => {
  [url, stop] = await startApplication(suite.server.url);
});
afterAll(() => stop());

/** Runs the Express application of the client's README with a free port. */
async function startApplication(keyhold: string): Promise<[url: string, stop: () => Promise<void>]> {
  const [application, ...others] = readPage("packages/client/README.md").blocks.filter(({ text }) =>
    text.includes("@keyhold/client/express"),
  );
  if (application === undefined || others.length > 0) throw new Error("there must be one Express application");
  const listening = 'app.listen(0, "127.0.0.1", function () { console.log(this.address().port); })';
  const text = application.text.replace("http://127.0.0.1:4420", keyhold).replace("app.listen(3000)", listening);
  const dir = mkdtempSync(join(import.meta.dirname, ".blocks-"));
  const file = join(dir, "application.ts");
  writeFileSync(file, text);
  const args = ["--conditions=keyhold-source", file];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const port = await Promise.race([once(createInterface(child.stdout), "line"), exited]);
  if (child.exitCode !== null) throw new Error("the application has ended");
  const stop = async () => {
    child.kill();
    await exited;
    rmSync(dir, { recursive: true, force: true });
  };
  return [`http://127.0.0.1:${port}`, stop];
}

async function call(method: "GET" | "POST", credential?: string, headers: Record<string, string> = {}) {
  const body = method === "POST" ? { body: JSON.stringify({ title: "Emma" }) } : {};
  const authorization = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  const type = { "content-type": "application/json", connection: "close" };
  const response = await fetch(`${url}/books`, { method, headers: { ...type, ...authorization, ...headers }, ...body });
  const challenge = response.headers.get("www-authenticate");
  return { status: response.status, challenge, body: await response.json() };
}

test("each route admits callers with its scope", async () => {
  const { secret: reader } = await issue(suite.rest, { actor_id: "reader", scopes: ["books.read"] });
  const { secret: writer } = await issue(suite.rest, { actor_id: "writer", scopes: ["books.read", "books.write"] });
  expect(await call("POST", writer)).toMatchObject({ status: 201, body: { writer: "writer" } });
  expect(await call("GET", reader)).toMatchObject({
    status: 200,
    body: { reader: "reader", books: ["Middlemarch", "Emma"] },
  });
  expect(await call("POST", reader)).toMatchObject({
    status: 403,
    challenge: expect.stringContaining('error="insufficient_scope"'),
  });
  expect(await call("GET", reader)).toMatchObject({ body: { books: ["Middlemarch", "Emma"] } });
});

test("no route admits a caller without a valid credential", async () => {
  for (const method of ["GET", "POST"] as const) {
    expect(await call(method)).toMatchObject({ status: 401, challenge: 'Bearer realm="api"' });
    expect(await call(method, "unknown")).toMatchObject({
      status: 401,
      challenge: expect.stringContaining('error="invalid_token"'),
    });
  }
});

test("a key is admitted from its addresses only, whatever an untrusted client says of them", async () => {
  const scopes = ["books.read"];
  const [{ secret: local }, { secret: remote }] = await Promise.all([
    issue(suite.rest, { scopes, ip_restriction: { allowed_cidrs: ["127.0.0.1/32"] } }),
    issue(suite.rest, { scopes, ip_restriction: { allowed_cidrs: ["192.0.2.0/24"] } }),
  ]);
  expect(await call("GET", local)).toMatchObject({ status: 200 });
  expect(await call("GET", remote, { "x-forwarded-for": "192.0.2.1" })).toMatchObject({ status: 401 });
});

test("a token must be made for the audience of the application", async () => {
  const { secret } = await issue(suite.rest, { scopes: ["books.read"] });
  const [here, elsewhere, nowhere] = await Promise.all(
    [["books"], ["films"], []].map((audience) => derive(suite.rest, secret, { audience })),
  );
  expect(await call("GET", here?.token)).toMatchObject({ status: 200 });
  for (const { token } of [elsewhere, nowhere]) {
    expect(await call("GET", token)).toMatchObject({
      status: 401,
      body: { error: { message: "the credential is not for this service" } },
    });
  }
});
