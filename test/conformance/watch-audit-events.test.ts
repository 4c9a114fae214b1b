import { expect, onTestFinished, test } from "vitest";
import { table, useService } from "../support/conformance.ts";
import { WATCH_PROTOCOLS } from "../support/protocols/watch.ts";
import { issue, paths } from "../support/rest.ts";

const suite = useService();

test.each(table(WATCH_PROTOCOLS.map((protocol) => [protocol.name, protocol] as const)))(
  "%s: a stream that is resumed by its last token receives each event once, in order",
  async (_, { watch }) => {
    const { keyId } = await issue(suite.rest);
    const change = async (verb: string) => {
      expect((await suite.rest("POST", `${paths.keys}/${keyId}:${verb}`, {})).status).toBe(200);
    };
    const open = (request: object) => {
      const leaving = new AbortController();
      onTestFinished(() => leaving.abort());
      const { signal } = leaving;
      const stream = watch(suite.server.url, { filter: `key_id="${keyId}"`, ...request }, { signal });
      return {
        async next(): Promise<{ seq: number; resumeToken: string }> {
          for (;;) {
            const { value } = await stream.next();
            if (value === undefined) throw new Error("the stream has ended");
            if (value.seq !== undefined) return { ...value, seq: value.seq };
          }
        },
        leave: () => leaving.abort(),
      };
    };
    const first = open({ startSeq: 0n });
    const issued = await first.next();
    await change("disable");
    const disabled = await first.next();
    first.leave();
    await change("enable");
    const second = open({ startSeq: 0n, resumeToken: disabled.resumeToken });
    const enabled = await second.next();
    await change("revoke");
    const revoked = await second.next();
    const seqs = [issued, disabled, enabled, revoked].map(({ seq }) => seq);
    const { body } = await suite.rest("GET", `${paths.auditEvents}?order_by=seq&filter=key_id%3D%22${keyId}%22`);
    expect(seqs).toEqual(body.audit_events.map(({ seq }: { seq: string }) => Number(seq)));
    expect(seqs).toHaveLength(4);
  },
);

test("every invalid field of a request is named", async () => {
  const query = new URLSearchParams({ start_seq: "-1", resume_token: "no token", filter: "actor=1" });
  const { status, body } = await suite.rest("GET", `${paths.auditEvents}:watch?${query}`);
  expect(status).toBe(400);
  const violations: { field: string }[] = body.error.details[1].field_violations;
  expect(violations.map(({ field }) => field).sort()).toEqual(["filter", "resume_token", "start_seq"]);
});
