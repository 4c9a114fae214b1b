import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { join, resolve } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { audit } from "../../tools/supply-chain/audit.ts";
import { isInstalled, type Lockfile, lockfileViolations, nameOf } from "../../tools/supply-chain/lockfile.ts";
import { writeSbom } from "../../tools/supply-chain/sbom.ts";
import { listenLocally } from "../support/listen.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => JSON.parse(readFileSync(join(root, file), "utf8"));
const lock: Lockfile = read("package-lock.json");

test("every locked package has its SHA-512 and no unknown install script, and none is deprecated", () => {
  expect(Object.keys(lock.packages).length).toBeGreaterThan(300);
  expect(lockfileViolations(lock, read("package.json").allowScripts)).toEqual([]);
});

test("a locked package that breaks a rule is reported by name", () => {
  const integrity = "sha512-AAAA";
  const packages = {
    "": {},
    "node_modules/a": { version: "1.0.0" },
    "node_modules/a/node_modules/@s/b": { version: "1.0.0", integrity: "sha1-AAAA" },
    "node_modules/c": { version: "1.0.0", integrity, deprecated: "use d" },
    "node_modules/e": { version: "1.0.0", integrity, resolved: "git+ssh://git@example.com/e.git#1" },
    "node_modules/@keyhold/client": { resolved: "packages/client", link: true },
    "node_modules/h": { resolved: "packages/client", link: true },
    "node_modules/f": { version: "1.0.0", integrity, hasInstallScript: true },
    "node_modules/g": { version: "1.0.0", integrity, hasInstallScript: true },
  };
  expect(lockfileViolations({ packages }, { g: true })).toEqual([
    "a 1.0.0: no SHA-512 of its content",
    "@s/b 1.0.0: no SHA-512 of its content",
    "c 1.0.0: deprecated: use d",
    "e 1.0.0: not from a registry",
    "h : no SHA-512 of its content",
    "h : not from a registry",
    "f 1.0.0: has an install script that allowScripts does not name",
  ]);
});

/** A registry with this response to `npm audit`, and without packages. */
async function registry(answer: RequestListener): Promise<NodeJS.ProcessEnv> {
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === "POST") answer(request, response);
    else response.writeHead(404).end("{}");
  });
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${await listenLocally(server)}/`;
  return { ...process.env, npm_config_registry: url, npm_config_fetch_retries: "0" };
}

const answering = (body: unknown) =>
  registry((_, response) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body)));

test("advisories are read from the registry, and a missing response is not treated as no advisories", async () => {
  expect(await audit(root, await answering({}))).toEqual({ kind: "clean" });
  const advisory = {
    id: 1,
    url: "https://example.com/1",
    title: "a fault",
    severity: "high",
    vulnerable_versions: "*",
  };
  const found = await audit(root, await answering({ pino: [advisory] }));
  expect(found).toMatchObject({
    kind: "vulnerable",
    findings: expect.arrayContaining(["pino: high: a fault (https://example.com/1)"]),
  });
  const refused = await audit(root, await registry((_, response) => response.writeHead(405).end()));
  expect(refused).toEqual({ kind: "unanswered", why: expect.stringContaining("405") });
});

test("the bill of materials has every package that runs in production or in the console, with its hash and license", async () => {
  const dir = await mkdtemp(join(inject("testDir"), "sbom-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const file = join(dir, "sub", "keyhold.cdx.json");
  const bom = await writeSbom(root, file);
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual(bom);
  expect(bom).toMatchObject({ bomFormat: "CycloneDX", metadata: { component: { name: "keyhold" } } });
  const production = Object.entries(lock.packages).filter(
    ([path, { dev, link }]) => isInstalled(path) && !dev && !link,
  );
  const inServer = production.map(([path, { version }]) => `${nameOf(path)}@${version}`);
  expect(inServer).toEqual(
    expect.arrayContaining([expect.stringMatching(/^jose@/), expect.stringMatching(/^fastify@/)]),
  );
  const dependenciesOf = (name: string) =>
    bom.dependencies.find(({ ref }) => ref.startsWith(`${name}@`))?.dependsOn ?? [];
  const inConsole = dependenciesOf("keyhold-console");
  const bundled = [
    "react",
    "react-dom",
    "@mantine/core",
    "@tanstack/react-router",
    "@connectrpc/connect-web",
    "csv-parse",
  ];
  expect(inConsole).toEqual(expect.arrayContaining(bundled.map((name) => expect.stringMatching(`^${name}@`))));
  expect(dependenciesOf("keyhold").join()).toMatch(/keyhold-console@/);
  expect(dependenciesOf("keyhold").join()).not.toMatch(/react|mantine/);
  const { version } = lock.packages.console ?? {};
  const refs = [...inServer, ...inConsole, `keyhold-console@${version}`];
  expect(bom.components.map((one) => one["bom-ref"]).sort()).toEqual([...new Set(refs)].sort());
  expect(refs.join()).not.toMatch(/vitest|vite@|typescript|@types|@keyhold/);
  const known = new Set([bom.metadata.component["bom-ref"], ...refs]);
  for (const { ref, dependsOn } of bom.dependencies)
    expect([ref, ...dependsOn].filter((one) => !known.has(one))).toEqual([]);
  for (const { name, purl, hashes, licenses, properties } of bom.components) {
    expect([name, purl]).toEqual([name, expect.stringMatching(/^pkg:npm\//)]);
    expect([name, licenses?.length]).toEqual([name, 1]);
    expect([name, JSON.stringify(properties)]).not.toEqual([name, expect.stringMatching("development")]);
    if (name !== "keyhold-console") expect([name, hashes?.[0]?.alg]).toEqual([name, "SHA-512"]);
  }
});
