import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clientAddressFrom } from "../../../src/lib/client-address.ts";
import type { GatewayOptions } from "../../../src/transport/server.ts";
import { FORWARD_AUTH } from "../../support/forward-auth.ts";
import { authorize, guardBy, REJECTED } from "./gateway-verdicts.ts";
import { observeHttp1 } from "./observe.ts";
import { LAST_REQUEST, OTHER_REQUEST } from "./protocols.ts";
import { type Subject, startSubject } from "./subjects.ts";

function gateways(decisions: number[]): GatewayOptions {
  const forwardAuth = {
    authorize,
    guard: guardBy(["x-keyhold-authorization"]),
    clientAddressOf: clientAddressFrom(["127.0.0.0/8"]),
    onDecision: (status: number) => decisions.push(status),
  };
  return { forwardAuth };
}

let fast: Subject;
let stock: Subject;
const decisions: { fast: number[]; stock: number[] } = { fast: [], stock: [] };
beforeAll(async () => {
  fast = await startSubject({ gateways: gateways(decisions.fast) });
  stock = await startSubject({ gateways: gateways(decisions.stock), fastPath: false });
});
afterAll(() => Promise.all([fast.close(), stock.close()]));

interface Row {
  readonly name: string;
  /** What follows the path. */
  readonly suffix?: string;
  readonly method?: string;
  readonly lines?: readonly string[];
  readonly body?: string;
  readonly status: number;
  /** Whether the fast path serves it; true by default. */
  readonly isTaken?: boolean;
}

const BEARER = "Authorization: Bearer valid";
const ROWS: readonly Row[] = [
  { name: "a valid credential", lines: [BEARER], status: 200 },
  { name: "a valid credential that is not shared", lines: ["X-Api-Key: unshared"], status: 200 },
  { name: "a verdict that is not cached", lines: ["X-Api-Key: later"], status: 200 },
  { name: "no credential", status: 401 },
  ...REJECTED.map(([reason, status]) => ({ name: reason, lines: [`Authorization: bearer  ${reason}`], status })),
  ...["unavailable", "unavailable-later", "fault"].map((one) => ({
    name: one,
    lines: [`X-Api-Key: ${one}`],
    status: 503,
  })),
  { name: "a limit", lines: ["X-Api-Key: limited"], status: 503 },
  { name: "a missing scope", suffix: '?required_scopes=admin,"a\\b"', lines: [BEARER], status: 403 },
  { name: "a gateway that is refused", lines: [BEARER, "X-Keyhold-Authorization: Bearer no"], status: 503 },
  { name: "a gateway without the scheme", lines: [BEARER, "X-Keyhold-Authorization: no"], status: 503 },
  { name: "an unknown parameter", suffix: "?scopes=a", lines: [BEARER], status: 400 },
  { name: "a malformed parameter", suffix: "?required_scopes=%ff", lines: [BEARER], status: 400 },
  { name: "the path of the client", suffix: "/a/b?x-api-key=valid", status: 200 },
  { name: "parameters and the path of the client", suffix: ";required_scopes=admin/a?b", lines: [BEARER], status: 403 },
  { name: "the same credential in two places", lines: [BEARER, "x-api-key: valid"], status: 200 },
  { name: "two credentials in two places", lines: [BEARER, "x-api-key: unshared"], status: 400 },
  { name: "a credential twice", lines: [BEARER, BEARER], status: 400 },
  { name: "two credentials in one field", lines: [`${BEARER}, Bearer other`], status: 400 },
  { name: "a cookie in two fields", lines: ["Cookie: a=b; c=d", "Cookie: x-api-key=valid"], status: 200 },
  { name: "bytes above ASCII", lines: [BEARER, "x-name: \u00e9\u00a0"], status: 200 },
  { name: "a credential with a byte above ASCII", lines: ["X-Api-Key: vali\u00e9"], status: 400 },
  {
    name: "an address",
    lines: ["X-Api-Key: NOT_FOUND", "X-Forwarded-For: 10.0.0.1", "X-Forwarded-For: 203.0.113.7"],
    status: 401,
  },
  { name: "the Origin of a web page", lines: [BEARER, "Origin: https://example.com"], status: 200 },
  {
    name: "the type and encoding of a body",
    lines: [BEARER, "Content-Type: a", "Content-Encoding: gzip"],
    status: 200,
  },
  { name: "a request id", lines: [BEARER, "X-Request-Id: a b"], status: 200 },
  { name: "two request ids", lines: [BEARER, "X-Request-Id: a", "X-Request-Id: a"], status: 200 },
  ...["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "POST"].flatMap((method) => [
    { name: `${method}, valid`, method, lines: [BEARER], status: 200 },
    { name: `${method}, rejected`, method, lines: ["X-Api-Key: EXPIRED"], status: 401 },
  ]),
  {
    name: "a preflight request",
    method: "OPTIONS",
    lines: ["Origin: https://a.example", "Access-Control-Request-Method: GET"],
    status: 401,
  },
  { name: "another method", method: "PROPFIND", lines: [BEARER], status: 200 },
  { name: "the method QUERY", method: "QUERY", lines: [BEARER], status: 200 },
  { name: "a body", method: "POST", lines: [BEARER], body: "abc", status: 200, isTaken: false },
  { name: "an empty body", method: "POST", lines: [BEARER], body: "", status: 200 },
  { name: "POST with a field twice", method: "POST", lines: [BEARER, "a: b", "a: b"], status: 200 },
  { name: "another path", suffix: "s", lines: [BEARER], status: 404, isTaken: false },
  { name: "an encoded path", suffix: "%2f", lines: [BEARER], status: 404, isTaken: false },
];

describe.for([false, true])(
  "the fast path answers gateways like Fastify, after a request that was handed over: %s:",
  (isHandedOver) => {
    // The parser of the test expects the response to HEAD first.
    const rows = ROWS.filter(({ method }) => !isHandedOver || method !== "HEAD");
    test.for(rows.map((row, index) => [row.name, row, index] as const))("%s", async ([, row, place]) => {
      const index = isHandedOver ? ROWS.length + place : place;
      const first = isHandedOver ? [OTHER_REQUEST] : [];
      const { suffix = "", method = "GET", lines = [], body, status, isTaken = true } = row;
      const id = lines.some((line) => /^x-request-id/i.test(line)) ? undefined : `request-${index}`;
      const length = body === undefined ? [] : [`Content-Length: ${body.length}`];
      const all = ["Host: localhost", ...(id === undefined ? [] : [`X-Request-Id: ${id}`]), ...length, ...lines];
      const sent = `${method} ${FORWARD_AUTH}${suffix} HTTP/1.1\r\n${all.join("\r\n")}\r\n\r\n${body ?? ""}`;
      const ask = async (subject: Subject) => {
        const seen = await observeHttp1(
          subject.port,
          [...first, Buffer.from(sent, "latin1"), LAST_REQUEST],
          method === "HEAD",
        );
        return { seen, log: id === undefined ? [] : await subject.log(id) };
      };
      const before = fast.passedOn();
      const [ours, theirs] = [await ask(fast), await ask(stock)];
      expect(ours.seen.map((one) => one.status)).toEqual([...first.map(() => 200), status, 200]);
      expect(ours).toEqual(theirs);
      // The fast path declines the first and the last request.
      expect(fast.passedOn() - before - first.length - 1).toBe(isTaken ? 0 : 1);
      expect(decisions.fast.splice(0)).toEqual(status === 404 ? [] : [status]);
      expect(decisions.stock.splice(0)).toEqual(status === 404 ? [] : [status]);
    });
  },
);
