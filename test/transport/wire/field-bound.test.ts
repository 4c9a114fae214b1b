import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { frame } from "../../support/wire.ts";
import { pathOf, WAYS } from "../fast-path/protocols.ts";
import { type Subject, startSubject } from "../fast-path/subjects.ts";

let subject: Subject;
beforeAll(async () => {
  subject = await startSubject({});
});
afterAll(() => subject.close());

/** Empty fields with random numbers from 1 to 15, so that they do not compress a hundred times. */
const TOO_MANY = Buffer.from(
  Uint8Array.from({ length: 2 * 250_001 }, (_, i) => {
    const number = 1 + ((Math.imul(i, 0x9e3779b1) >>> 8) % 15);
    return i % 2 === 0 ? (number << 3) | 2 : 0;
  }),
);
const FEW = Buffer.from([0x0a, 0x03, 0x0a, 0x01, 0x61]);

/** Each encoding of a binary message, on the fast path and beside it. */
const forms: readonly (readonly [name: string, headers: Record<string, string>, form: (bytes: Buffer) => Buffer])[] = [
  ["Connect", { "content-type": "application/proto" }, (bytes) => bytes],
  [
    "Connect beside the fast path",
    { "content-type": "application/proto", "content-encoding": "identity" },
    (bytes) => bytes,
  ],
  [
    "Connect with gzip",
    { "content-type": "application/proto", "content-encoding": "gzip" },
    (bytes) => gzipSync(bytes),
  ],
  ["gRPC-Web", { "content-type": "application/grpc-web+proto" }, (bytes) => frame(bytes)],
  [
    "gRPC-Web with gzip",
    { "content-type": "application/grpc-web+proto", "grpc-encoding": "gzip" },
    (bytes) => frame(gzipSync(bytes), { flags: 1 }),
  ],
];

describe.for(forms)("over %s", ([, headers, form]) => {
  const [way] = WAYS.filter(({ protocol }) => protocol === "connect");
  const send = async (bytes: Buffer) => {
    if (way === undefined) throw new Error("no way");
    const url = subject.url + pathOf(way, ApiKeysService.method.batchVerifyApiKeys);
    const response = await fetch(url, { method: "POST", headers, body: new Uint8Array(form(bytes)) });
    // gRPC-Web escapes its message.
    return `${response.status} ${(await response.text()).replaceAll("%20", " ").replaceAll("%3A", ":")}`;
  };

  test("a binary message with too many fields is refused before it is decoded", async () => {
    expect(await send(TOO_MANY)).toContain("body: has more than 16384 values");
  });

  test("a message that expands more than a hundred times is refused", async () => {
    const refused = headers["content-encoding"] === "gzip" || headers["grpc-encoding"] === "gzip";
    if (refused) expect(await send(Buffer.alloc(400_000))).toContain("the request body is too large");
  });

  test("a message with few fields is answered", async () => {
    expect(await send(FEW)).toMatch(/^200 /);
  });
});
