import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { converse, toHttp1 } from "../../hostile/http1.ts";
import { HELLO, toHttp2 } from "../../hostile/http2.ts";
import { table } from "../../support/conformance.ts";
import { useGuardedService } from "../../support/guarded.ts";

/** The page at /docs for a caller without a credential. */
const suite = useGuardedService();

const get = (path: string, headers: Record<string, string> = {}) => fetch(suite.server.url + path, { headers });

/** Returns the paths that the page references. */
async function namedFiles(): Promise<string[]> {
  const page = await (await get("/docs")).text();
  return [...page.matchAll(/\b(?:src|href)="([^"]+)"/g)].map(
    ([, target = ""]) => new URL(target, `${suite.server.url}/docs`).pathname,
  );
}

const TYPES: readonly (readonly [file: string, type: string])[] = [
  ["/docs/color-scheme.js", "text/javascript; charset=utf-8"],
  ["/docs/icon.svg", "image/svg+xml"],
  ["/docs/start.js", "text/javascript; charset=utf-8"],
  ["/docs/style.css", "text/css; charset=utf-8"],
  ["/docs/swagger-ui-bundle.js", "application/javascript; charset=utf-8"],
  ["/docs/swagger-ui.css", "text/css; charset=utf-8"],
  ["/openapi.json", "application/json; charset=utf-8"],
];

test("the page references only files of this server", async () => {
  const files = new Set(await namedFiles());
  expect([...files].sort()).toEqual(["/console", ...TYPES.map(([file]) => file)]);
  const page = await (await get("/docs")).text();
  expect(page).not.toMatch(/https?:|"\/\//);
  for (const file of ["start.js", "color-scheme.js", "style.css"]) {
    expect(await (await get(`/docs/${file}`)).text(), file).not.toMatch(/https?:|"\/\//);
  }
});

test("the page's policy forbids other origins and inline scripts", async () => {
  const { status, headers } = await get("/docs");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/^default-src 'none';/);
  expect(policy).not.toMatch(/https?:|unsafe|\*/);
});

describe("a file of the page", () => {
  test.for(table(TYPES))("%s is served with its content type, and as 304 when cached", async ([file, type]) => {
    const { status, headers, body } = await get(file);
    await body?.cancel();
    expect({ status, type: headers.get("content-type") }).toEqual({ status: 200, type });
    const etag = headers.get("etag");
    // Without the second header, fetch adds no-cache.
    const known = { "if-none-match": etag ?? "", "cache-control": "max-age=0" };
    if (etag !== null) expect((await get(file, known)).status).toBe(304);
  });

  test("is 404 when unknown", async () => {
    for (const path of ["/docs/index.html", "/docs/..%2fpackage.json", "/docs/swagger-ui.js"]) {
      expect((await get(path)).status, path).toBe(404);
    }
  });
});

test("the icon is that of the console", async () => {
  const ofConsole = readFileSync(new URL("../../../console/public/icon.svg", import.meta.url), "utf8");
  expect(await (await get("/docs/icon.svg")).text()).toBe(ofConsole);
});

test("/openapi.json is the document", async () => {
  const committed = readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8");
  expect(await (await get("/openapi.json")).text()).toBe(committed);
});

test.for(table(["/", "/docs/"]))("%s leads to /docs", async (path) => {
  const { url, status, body } = await get(path);
  await body?.cancel();
  expect({ url, status }).toEqual({ url: `${suite.server.url}/docs`, status: 200 });
});

test("each link in the document leads to a page", async () => {
  const text = await (await get("/openapi.json")).text();
  const links = new Set([...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target = ""]) => target));
  expect(links.size).toBeGreaterThan(3);
  for (const link of links) {
    const { status, headers, body } = await fetch(new URL(link, `${suite.server.url}/docs`));
    await body?.cancel();
    const found = { link, status, type: headers.get("content-type") };
    expect(found).toEqual({ link, status: 200, type: "text/plain; charset=utf-8" });
  }
});

test("responses that are not read hold no file descriptors", async () => {
  const openFiles = async () => (await readdir("/proc/self/fd")).length;
  await (await get("/openapi.json")).text();
  const before = await openFiles();
  const port = Number(new URL(suite.server.url).port);
  const request = { kind: "", method: "GET", path: "/openapi.json", fields: [], body: Buffer.alloc(0) };
  const streams = Array.from({ length: 200 }, (_, place) => toHttp2(2 * place + 1, request));
  for (const ending of ["reset", "half-close"] as const) {
    await converse(port, [Buffer.concat([HELLO, ...streams])], { ending });
    await converse(port, [Buffer.concat(streams.map(() => toHttp1(request)))], { ending });
  }
  expect(await openFiles()).toBeLessThan(before + 20);
});
