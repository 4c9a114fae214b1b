import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { EXT_AUTHZ } from "../../../src/transport/gateways/ext-authz.ts";
import { encodeCheck } from "../../support/envoy-protos.ts";
import { check, type Described, describeRequest } from "../../support/ext-authz.ts";
import { fields } from "../../support/forward-auth.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { linesOf } from "../../support/log-lines.ts";
import { issue } from "../../support/rest.ts";
import { scrape, total } from "../../support/scrape.ts";
import { Secrets } from "../../support/secrets.ts";
import { frame } from "../../support/wire.ts";
import { observeHttp2 } from "../fast-path/observe.ts";

/** What the log, metrics and answers show of ext_authz. */

const suite = useGuardedService();

test.each(["on", "off"])("metrics have the decisions, and nothing has a secret; fast path: %s", async (fastPath) => {
  await suite.server.restart({
    ...{
      KEYHOLD_AUTH: "admin-token",
      KEYHOLD_GATEWAYS: "ext-authz",
      KEYHOLD_LOG_LEVEL: "trace",
      KEYHOLD_FAST_PATH: fastPath,
    },
    ...{ KEYHOLD_METRICS_PORT: "0" },
    KEYHOLD_GATEWAY_CREDENTIALS: "bearer,header:x-api-key,query:key,cookie:key",
  });
  const secrets = new Secrets();
  const secret = () => secrets.add(randomBytes(30).toString("base64url"), "what a client or gateway sent");
  const { secret: issued } = await issue(suite.rest);
  secrets.add(issued, "an issued secret");
  const token = { authorization: `Bearer ${secrets.add(suite.token("keyhold:verify"), "an admin token")}` };
  const answers: unknown[] = [];
  const ask = async (described: Described, metadata: Record<string, string> = token) => {
    for (const isRaw of [true, false])
      answers.push(await check(suite.server, describeRequest({ ...described, isRaw }), metadata));
  };

  await ask({ headers: [["Authorization", `Bearer ${issued}`]] });
  await ask({ headers: [["Authorization", `Bearer ${secret()}`]] });
  await ask({ headers: [["Authorization", `Bearer ${issued}, ${secret()}`]] });
  await ask({
    headers: fields(`X-Api-Key: ${issued}é`, `${secret()}: ${issued}`),
  });
  await ask({ path: `/${secret()}?key=${secret()}&key=${issued}`, method: secret() });
  await ask({
    headers: fields(`Cookie: key=${secret()}`, `X-Forwarded-For: ${secret()}`),
    source: secret(),
  });
  await ask({ extensions: { required_scopes: `${secret()} \u0001` } });
  await ask({ extensions: { [secret()]: secret() }, headers: [["Authorization", `Bearer ${issued}`]] });
  await ask({}, { authorization: `Bearer ${secret()}` });
  await ask({}, { "x-keyhold-authorization": secret() });
  const bytes = encodeCheck(describeRequest({ path: `/${secret()}` }));
  const call = { ":path": `/${EXT_AUTHZ}`, "content-type": "application/grpc", te: "trailers", ...token };
  answers.push(await observeHttp2(suite.server.url, call, [frame(bytes.subarray(0, -1))]));

  const samples = await scrape(linesOf(suite.server.log()).findLast(({ metrics }) => metrics !== undefined)?.metrics);
  const counted = (status: string) =>
    total(samples, "keyhold_gateway_decisions_total", { gateway: "ext_authz", status });
  expect(["200", "400", "401", "503"].map(counted)).toEqual([2, 11, 4, 4]);
  // Once each, although the complete path admits a call twice.
  expect(total(samples, "keyhold_refused_credentials_total")).toBe(4);
  const calls = samples.filter(({ name, labels }) => name === "keyhold_requests_total" && labels.rpc === EXT_AUTHZ);
  expect(Object.fromEntries(calls.map(({ labels, value }) => [labels.code, value]))).toEqual({
    ...{ OK: 2, INVALID_ARGUMENT: 11, UNAUTHENTICATED: 4, PERMISSION_DENIED: 4 },
  });
  expect(secrets.foundIn(suite.server.log())).toEqual([]);
  expect(secrets.foundIn(JSON.stringify(samples))).toEqual([]);
  expect(secrets.foundIn(JSON.stringify(answers))).toEqual([]);
});
