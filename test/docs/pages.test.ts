import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLIENT, type OidcIssuer, startOidcIssuer } from "../support/oidc-issuer.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { ROOT_SECRET, startTestServer, type TestServer } from "../support/server.ts";
import { type Block, isRun, type Page, readPages } from "./blocks.ts";
import { expectOutput } from "./output.ts";
import { type Place, type Ran, runPage } from "./session.ts";

/** Blocks that are not run, with the reason. */
const NOT_RUN: Readonly<Record<string, string>> = {
  "npm ci && npm test": "it is what runs this",
  "apt-get install wrk nghttp2-client": "it measures for hours",
  "pg_dump ": "npm has no pg_dump; it was tried by hand, with PostgreSQL 17",
};

const isNotRun = ({ text }: Block) => Object.keys(NOT_RUN).some((beginning) => text.startsWith(beginning));

const pages = readPages().map((page) => ({ ...page, blocks: page.blocks.filter((block) => !isNotRun(block)) }));

let server: TestServer;
let oidc: OidcIssuer;
let dir: string;
beforeAll(async () => {
  dir = mkdtempSync(join(import.meta.dirname, ".blocks-"));
  [server, oidc] = await Promise.all([startTestServer(), startOidcIssuer()]);
});
afterAll(async () => {
  rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  await Promise.all([server.close(), oidc.close()]);
});

/** Runs a page with a database for its commands and servers, and compares its output. */
async function check(page: Page, { signal }: { signal: AbortSignal }): Promise<void> {
  const database = await createTestDatabase();
  try {
    compare(page, await runPage(page, placeOf(database), signal));
  } finally {
    await database.drop();
  }
}

function placeOf({ url: databaseUrl, ownerUrl }: TestDatabase): Place {
  return {
    dir,
    url: server.url,
    replaced: {
      // The packages that run this test are installed already.
      "npm ci && ": "",
      "postgres://keyhold:…@db:5432/keyhold": databaseUrl,
      "postgres://keyhold_server:…@db:5432/keyhold": databaseUrl,
      "postgres://keyhold_owner:…@db:5432/keyhold": ownerUrl,
      "KEYHOLD_ROOT_SECRET=…": `KEYHOLD_ROOT_SECRET=${ROOT_SECRET}`,
      "https://idp.example.com": oidc.issuer,
      "https://keyhold.example.com": oidc.audience,
      "await app.listen({ port: 3000 })": "await app.listen({ port: 0 }); await app.close()",
      "app.listen(3000)": "app.listen(0).close()",
    },
    environment: {
      KEYHOLD_DATABASE_URL: databaseUrl,
      KEYHOLD_ROOT_SECRET: ROOT_SECRET,
      KEYHOLD_CACHE_SIZE: "16",
      KEYHOLD_METRICS_PORT: "0",
      OIDC_CLIENT_ID: CLIENT.id,
      OIDC_CLIENT_SECRET: CLIENT.secret,
      // Programs import the package of this checkout, which is not built.
      NODE_OPTIONS: "--conditions=keyhold-source",
      TMPDIR: dir,
    },
  };
}

function compare(page: Page, ran: readonly Ran[]): void {
  for (const [index, { role, info, text, line }] of page.blocks.entries()) {
    if (role !== "output") continue;
    const before = ran.find(({ block }) => block === page.blocks[index - 1]);
    if (before === undefined) throw new Error(`${page.name}:${line}: there is no block before it that prints this`);
    try {
      expectOutput(before.output, text, info);
    } catch (error) {
      throw new Error(`${page.name}:${line}: what is shown is not what was printed:\n${before.output}`, {
        cause: error,
      });
    }
  }
}

describe("every block prints what its page shows", { concurrent: true, timeout: 120_000 }, () => {
  test.for(pages.filter(({ blocks }) => blocks.some(isRun)))("$name", check);
});

test("each excluded block exists", () => {
  const leftOut = readPages().flatMap(({ blocks }) => blocks.filter(isNotRun));
  expect(leftOut).toHaveLength(Object.keys(NOT_RUN).length);
});
