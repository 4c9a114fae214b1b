import { status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { expire, table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { lockTable } from "../support/locked-row.ts";
import { WATCH_PROTOCOLS } from "../support/protocols/watch.ts";
import { issue, paths } from "../support/rest.ts";
import { openStream } from "../support/verification-stream.ts";

const suite = useGuardedService();

const post = async (path: string, body: object = {}) => expect((await suite.rest("POST", path, body)).status).toBe(200);

const patch = async (keyId: string, field: string, value: unknown) => {
  const answer = await suite.rest("PATCH", `${paths.issued}/${keyId}?update_mask=${field}`, { [field]: value });
  expect(answer.status).toBe(200);
};

/** What may happen to the caller's token, and the status that ends its streams. */
const CHANGES = [
  ["revoked", status.UNAUTHENTICATED, (keyId: string) => post(`${paths.keys}/${keyId}:revoke`)],
  ["disabled", status.UNAUTHENTICATED, (keyId: string) => post(`${paths.keys}/${keyId}:disable`)],
  ["rotated", status.UNAUTHENTICATED, (keyId: string) => post(`${paths.issued}/${keyId}:rotate`)],
  ["expired", status.UNAUTHENTICATED, (keyId: string) => expire(suite, keyId)],
  ["without its scope", status.PERMISSION_DENIED, (keyId: string) => patch(keyId, "scopes", ["keyhold:derive"])],
  [
    "restricted to other addresses",
    status.UNAUTHENTICATED,
    (keyId: string) => patch(keyId, "ip_restriction", { allowed_cidrs: ["192.0.2.0/24"] }),
  ],
] as const;

/** Returns the number of events in the audit log. */
async function endOf({ rest }: Pick<typeof suite, "rest">): Promise<{ size: number }> {
  const { body } = await rest("GET", `${paths.auditEvents}?page_size=1&order_by=seq%20desc`);
  return { size: Number(body.audit_events[0].seq) + 1 };
}

describe.each(table(CHANGES))("the stream of a caller whose token is %s", (_, code, change) => {
  test("ends instead of the next answer", async () => {
    const [caller, key] = [await issue(suite.rest, { scopes: ["keyhold:verify"] }), await issue(suite.rest)];
    const stream = openStream(suite.server.address, bearer(caller.secret));
    stream.send({ id: 1, request: { credential: key.secret } });
    expect(await stream.received(1)).toHaveLength(1);
    await change(caller.keyId);
    stream.send({ id: 2, request: { credential: key.secret } });
    expect((await stream.status).code).toBe(code);
    expect(stream.answers).toHaveLength(1);
  });

  test("ends instead of the next event of a watch", async () => {
    const caller = await issue(suite.rest, { scopes: ["keyhold:audit"] });
    const options = { headers: bearer(caller.secret) };
    const streams = WATCH_PROTOCOLS.map(({ watch }) => watch(suite.server.url, { startSeq: 0n }, options));
    for (const stream of streams) expect(await stream.next()).toMatchObject({ value: { seq: 0 } });
    await change(caller.keyId);
    await issue(suite.rest);
    const { size } = await endOf(suite);
    for (const stream of streams) {
      const seen: unknown[] = [];
      const read = async () => {
        for await (const { seq } of stream) seen.push(seq);
      };
      await expect(read()).rejects.toMatchObject({ code: status[code] });
      expect(seen).not.toContain(size - 1);
    }
  });

  test("ends instead of an answer that waits for the database", async () => {
    const [caller, key] = [await issue(suite.rest, { scopes: ["keyhold:verify"] }), await issue(suite.rest)];
    const stream = openStream(suite.server.address, { ...bearer(caller.secret), "cache-control": "no-cache" });
    stream.send({ id: 1, request: { credential: key.secret } });
    expect(await stream.received(1)).toHaveLength(1);
    const release = await lockTable(suite.sql, "api_keys");
    stream.send({ id: 2, request: { credential: key.secret } });
    await suite.rest("GET", "/health/alive");
    await release();
    await change(caller.keyId);
    stream.send({ id: 3, request: { credential: key.secret } });
    expect((await stream.status).code).toBe(code);
    expect(stream.answers.every(({ id }) => id < 3)).toBe(true);
  });
});

test("a stream whose caller is rejected ends before it reads a request", async () => {
  for (const [headers, code] of [
    [{}, status.UNAUTHENTICATED],
    [bearer(suite.token("keyhold:derive")), status.PERMISSION_DENIED],
  ] as const) {
    expect((await openStream(suite.server.address, headers).status).code).toBe(code);
  }
});
