import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { Target } from "../hostile/target.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { paths } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { rpcPath } from "../support/wire.ts";

/** MiB. */
const BUFFER = 32;

let database: TestDatabase;
let server: Target;

beforeAll(async () => {
  database = await createTestDatabase();
  server = new Target({
    name: "server",
    token: undefined,
    environment: {
      KEYHOLD_DATABASE_URL: database.url,
      KEYHOLD_ROOT_SECRET: ROOT_SECRET,
      KEYHOLD_CACHE_SIZE: "16",
      KEYHOLD_REQUEST_BUFFER_SIZE: String(BUFFER),
    },
  });
  await server.start();
});
afterAll(async () => {
  await server.stop();
  await database.drop();
});

const BATCH = `${paths.imported}:batchCreate`;
const JSON_TYPE = "application/json";

describe("unfinished bodies do not exhaust the memory", () => {
  const attacks = [
    ["self-revocations over REST", paths.selfRevoke, 1_000_000],
    ["self-revocations over Connect", rpcPath(SelfServiceService.method.selfRevokeApiKey), 1_000_000],
    ["batch imports", BATCH, 4_000_000],
    ["verifications", `${paths.keys}:verify`, 1_000_000],
  ] as const;

  test.each(attacks)("250 %s over one connection", async (_, path, size) => {
    const { residentMiB } = await server.observe();
    const session = connect(server.url);
    const chunk = Buffer.alloc(size, " ");
    const written = Array.from({ length: 250 }, () => {
      const stream = session.request(
        { ":method": "POST", ":path": path, "content-type": JSON_TYPE },
        { endStream: false },
      );
      stream.on("error", () => {}).resume();
      // Some wait for their flow-control window and are reset with the session.
      return Promise.race([
        new Promise((resolve) => stream.write(chunk, resolve)),
        new Promise((resolve) => stream.once("close", resolve)),
      ]);
    });
    await Promise.all(written.slice(0, 50));
    const verdict = await fetch(`${server.url}${paths.keys}:verify`, {
      method: "POST",
      headers: { "content-type": JSON_TYPE },
      body: '{"credential":"x"}',
      signal: AbortSignal.timeout(10_000),
    });
    expect(verdict.status).toBe(200);
    await Promise.race([Promise.all(written), new Promise((resolve) => setTimeout(resolve, 2_000))]);
    const now = await server.observe();
    session.destroy();
    // In addition to the buffer: windows of unread streams, and garbage.
    expect(now.residentMiB - residentMiB).toBeLessThan(BUFFER + 120);
  });
});
