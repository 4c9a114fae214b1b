import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { EXT_AUTHZ } from "../../../src/transport/gateways/ext-authz.ts";
import { FORWARD_AUTH } from "../../../src/transport/gateways/forward-auth.ts";
import { INTROSPECTION } from "../../../src/transport/gateways/introspect.ts";
import { createAccessLogWriter, type LogVerifications } from "../../../src/transport/pipeline/access-log.ts";
import { derive, useService } from "../../support/conformance.ts";
import { check, describeRequest } from "../../support/ext-authz.ts";
import { fields, forwardAuth } from "../../support/forward-auth.ts";
import { introspect } from "../../support/introspect.ts";
import { linesOf } from "../../support/log-lines.ts";
import { issue, paths } from "../../support/rest.ts";
import { scrape, total } from "../../support/scrape.ts";

const suite = useService();

const RPC = "keyhold.v2alpha1.ApiKeysService";

test.each(["on", "off"])(
  "lines of verifications that accept every credential are left out; fast path: %s",
  async (fastPath) => {
    const { server } = suite;
    await server.restart({
      ...{ KEYHOLD_LOG_VERIFICATIONS: "failed", KEYHOLD_FAST_PATH: fastPath, KEYHOLD_METRICS_PORT: "0" },
      ...{ KEYHOLD_GATEWAYS: "forward-auth,ext-authz", KEYHOLD_GATEWAY_CALLERS: "network" },
      KEYHOLD_GATEWAY_NETWORKS: "127.0.0.1",
    });
    const { secret } = await issue(suite.rest);
    const begin = linesOf(server.log()).length;
    const [good, bad] = [{ credential: secret }, { credential: "wrong" }];
    for (const { credential } of [good, bad]) {
      const headers = fields(`Authorization: Bearer ${credential}`);
      await suite.rest("POST", `${paths.keys}:verify`, { credential });
      await suite.rest("POST", `${paths.keys}:batchVerify`, { requests: [good, { credential }] });
      await introspect(server, { token: credential });
      await forwardAuth(server, { headers });
      await check(server, describeRequest({ headers }), {});
    }
    await suite.rest("POST", `${paths.keys}:verify`, { credential: "" });
    await derive(suite.rest, secret);
    await suite.rest("POST", `${paths.keys}:explain`, good);
    const lines = linesOf(server.log()).slice(begin);
    const requests = lines.filter(({ msg }) => msg === "request");
    expect(requests.map(({ rpc, code, verdict, rejected }) => [rpc, code, verdict ?? rejected])).toEqual([
      [`${RPC}/VerifyApiKey`, "OK", "NOT_FOUND"],
      [`${RPC}/BatchVerifyApiKeys`, "OK", "1"],
      [INTROSPECTION, "OK", "NOT_FOUND"],
      [FORWARD_AUTH, "UNAUTHENTICATED", "NOT_FOUND"],
      [EXT_AUTHZ, "UNAUTHENTICATED", "NOT_FOUND"],
      [`${RPC}/VerifyApiKey`, "INVALID_ARGUMENT", undefined],
      [`${RPC}/DeriveToken`, "OK", "VALID"],
      [`${RPC}/ExplainApiKey`, "OK", "VALID"],
    ]);
    const samples = await scrape(linesOf(server.log()).findLast(({ metrics }) => metrics !== undefined)?.metrics);
    expect(total(samples, "keyhold_requests_total", { rpc: `${RPC}/VerifyApiKey` })).toBe(3);
  },
);

/** Returns the lines that are written of some calls, of which the third and the fifth are chosen. */
function written(verifications: LogVerifications, code: string, isAccepted: boolean): unknown[] {
  const lines: string[] = [];
  const write = (chunk: unknown, _encoding: string, done: () => void) => {
    lines.push(String(chunk));
    done();
  };
  const randoms = [0.5, 0.01, 0.009, 0.99, 0];
  const random = () => randoms.shift() ?? expect.unreachable();
  const logger = pino({ base: null }, new Writable({ write }));
  const writeEntry = createAccessLogWriter(logger, verifications, random);
  for (let reqId = 1; reqId <= 5; reqId++) {
    const call = { reqId: String(reqId), method: "POST", status: 200, protocol: "rest", elapsed: 1 } as const;
    writeEntry({ ...call, code, isAccepted, fields: [{ verdict: "VALID" }] });
  }
  return linesOf(lines.join("")).map(({ reqId, sample_rate }) => [reqId, sample_rate]);
}

const EACH = ["1", "2", "3", "4", "5"].map((reqId) => [reqId, undefined]);

test.each([
  ["all", EACH],
  ["failed", []],
  [
    "sampled",
    [
      ["3", 100],
      ["5", 100],
    ],
  ],
] as const)("of accepted credentials, with %s, the lines are those that it names", (verifications, expected) => {
  expect(written(verifications, "OK", true)).toEqual(expected);
  expect(written(verifications, "CANCELLED", true)).toEqual(EACH);
  expect(written(verifications, "OK", false)).toEqual(EACH);
});
