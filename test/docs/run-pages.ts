import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { CLIENT, type OidcIssuer, startOidcIssuer } from "../support/oidc-issuer.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { ROOT_SECRET, startTestServer, type TestServer } from "../support/server.ts";
import { type Block, isRun, type Page, readPages } from "./blocks.ts";
import { expectOutput } from "./output.ts";
import { type Place, type Ran, runPage } from "./session.ts";

/** Blocks that are not run, with the reason. */
export const NOT_RUN: Readonly<Record<string, string>> = {
  "npm ci && npm test": "it is what runs this",
  "apt-get install wrk nghttp2-client": "it measures for hours",
  "pg_dump ": "npm has no pg_dump; it was tried by hand, with PostgreSQL 17",
};

export const isNotRun = ({ text }: Block) => Object.keys(NOT_RUN).some((beginning) => text.startsWith(beginning));

/** Pages with many servers and commands, which `npm run test:long` runs. `npm test` runs the others. */
export const LONG_PAGES: readonly string[] = [
  "docs/admin-authentication.md",
  "docs/command.md",
  "docs/embedded.md",
  "docs/gateways.md",
  "docs/leaked-key.md",
  "docs/moving.md",
  "docs/operating.md",
  "docs/rotation.md",
];

let server: TestServer;
let oidc: OidcIssuer;
let dir: string;

/** Starts what the pages need for a test file, and returns those of the pages that have blocks to run. */
export function usePages(isIncluded: (name: string) => boolean): Page[] {
  beforeAll(async () => {
    dir = mkdtempSync(join(import.meta.dirname, ".blocks-"));
    [server, oidc] = await Promise.all([startTestServer(), startOidcIssuer()]);
  });
  afterAll(async () => {
    rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
    await Promise.all([server.close(), oidc.close()]);
  });
  return readPages()
    .map((page) => ({ ...page, blocks: page.blocks.filter((block) => !isNotRun(block)) }))
    .filter(({ name, blocks }) => isIncluded(name) && blocks.some(isRun));
}

/** Runs a page with a database for its commands and servers, and compares its output. */
export async function checkPage(page: Page, { signal }: { signal: AbortSignal }): Promise<void> {
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
      // Many servers start at once, on a machine that may be slow.
      KEYHOLD_LEASE_TTL: "15s",
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
