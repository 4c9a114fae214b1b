import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { RevocationReason } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { newRawKey, useService, withQuery } from "../support/conformance.ts";
import { linesOf } from "../support/log-lines.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();

/** A node that does not answer and whose lease cannot be revoked: a transaction locks the row, like a hung backend. */
async function addUnresponsiveNode(): Promise<void> {
  const left = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const lease = "00000000-0000-7000-8000-000000000000";
  await suite.sql`INSERT INTO nodes (lease_id, name, version, ttl_ms) VALUES (${lease}, 'ghost', '0', 1)`;
  const holding = suite.sql.begin(async (sql) => {
    await sql`SELECT FROM nodes WHERE lease_id = ${lease} FOR UPDATE`;
    held.resolve();
    await left.promise;
  });
  await held.promise;
  onTestFinished(async () => {
    left.resolve();
    await holding;
    await suite.sql`DELETE FROM nodes WHERE lease_id = ${lease}`;
  });
}

const linesWith = (name: string, value: string): Json[] =>
  linesOf(suite.server.log()).filter((line) => line[name] === value && line.msg !== "fault");

// All at once, because each waits for more than ten seconds.
test("changes that a node does not confirm are executed, but not acknowledged, and the log names their keys", async () => {
  const { keyId, secret } = await issue(suite.rest);
  const other = await issue(suite.rest);
  await addUnresponsiveNode();
  const client = createClient(ApiKeysService, createGrpcTransport({ baseUrl: suite.server.url }));
  const reason = RevocationReason.KEY_COMPROMISE;
  const requests = Array.from({ length: 3 }, () => ({ raw_key: newRawKey(), name: "a key", actor_id: "unconfirmed" }));
  const [answer, failure, ofImport] = await Promise.all([
    suite.rest("POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_KEY_COMPROMISE" }),
    client.revokeApiKey({ keyId: other.keyId, reason }).catch((error: unknown) => error),
    suite.rest("POST", `${paths.imported}:batchCreate`, { requests }),
  ]);
  expect(answer).toMatchObject({
    status: 503,
    body: { error: { status: "UNAVAILABLE", details: [{ reason: "CHANGE_UNCONFIRMED" }, {}] } },
  });
  expect(answer.headers.get("retry-after")).toBe("1");
  expect(failure).toMatchObject({ rawMessage: expect.stringContaining("retry") });
  expect(ofImport.status).toBe(503);
  expect((await verify(suite.rest, secret)).is_valid).toBe(false);

  const named = linesWith("code", "UNAVAILABLE").flatMap(({ key_id }) => key_id ?? []);
  expect(named.sort()).toEqual([keyId, other.keyId].sort());
  const list = withQuery(paths.imported, { filter: "actor_id=unconfirmed" });
  const { imported_api_keys: made } = (await suite.rest("GET", list)).body;
  expect(made).toHaveLength(3);
  const [line] = linesWith("msg", "keys changed");
  expect(line.key_ids.sort()).toEqual(made.map(({ key_id }: Json) => key_id).sort());
});
