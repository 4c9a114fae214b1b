import { type DescMethodUnary, fromJson, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { table, UNKNOWN_KEY_ID, useService } from "../support/conformance.ts";
import { type InvalidValue, normalPath, restFields, textFields } from "../support/invalid-values.ts";
import { type Json, paths } from "../support/rest.ts";
import {
  callGrpc,
  expectNoChanges,
  frame,
  REST_ROUTES,
  RPCS,
  readConnectError,
  rpcPath,
  send,
} from "../support/wire.ts";

const suite = useService();
expectNoChanges(suite);

const JSON_TYPE = { "content-type": "application/json" };
const PROTO_TYPE = { "content-type": "application/proto" };

/** Batches validate each item on its own; the last tests cover them. */
const ofRequest = ({ field }: InvalidValue) => !field.startsWith("requests");
const withText = (rpc: DescMethodUnary) => textFields(rpc.input, "a").some(ofRequest);

function nuls({ input }: DescMethodUnary): InvalidValue[] {
  const wrong = ["\0", "a\0b"].flatMap((text) => textFields(input, text)).filter(ofRequest);
  expect(wrong.length).toBeGreaterThan(0);
  return wrong;
}

const WITH_BODY = REST_ROUTES.filter(({ httpMethod, rpc }) => /POST|PATCH/.test(httpMethod) && withText(rpc));

test.each(table(WITH_BODY))(
  "$httpMethod of $rpc.name refuses NUL in every string",
  async ({ rpc, httpMethod, path }) => {
    for (const { field, body } of nuls(rpc)) {
      const url = suite.server.url + path(UNKNOWN_KEY_ID);
      const answer = await send(url, httpMethod, JSON.stringify(body), JSON_TYPE);
      expect({ body, status: answer.status, fields: restFields(answer) }).toEqual({
        body,
        status: 400,
        fields: expect.arrayContaining([field]),
      });
    }
  },
);

test.each(table(RPCS.filter(withText)))(
  "$name over Connect refuses NUL in every string, as JSON and as Protobuf",
  async (rpc) => {
    for (const { field, body } of nuls(rpc)) {
      const url = suite.server.url + rpcPath(rpc);
      const asJson = await send(url, "POST", JSON.stringify(body), JSON_TYPE);
      const asProto = await send(url, "POST", binary(rpc, body), PROTO_TYPE);
      for (const answer of [asJson, asProto]) {
        const { code, fields } = readConnectError(answer);
        expect({ body, code, fields: fields.map(normalPath) }).toEqual({
          body,
          code: "invalid_argument",
          fields: expect.arrayContaining([field]),
        });
      }
    }
  },
);

test("an item of a batch with NUL fails by itself", async () => {
  const verified = await suite.rest("POST", `${paths.keys}:batchVerify`, { requests: [{ credential: "a\0b" }] });
  expect(verified.body.results).toMatchObject([{ is_valid: false, error_code: "VERIFICATION_ERROR_INVALID_FORMAT" }]);
  for (const field of ["name", "actor_id", "raw_key", "ttl"]) {
    const item = { name: "a", actor_id: "a", raw_key: "a", [field]: "a\0b" };
    const imported = await suite.rest("POST", `${paths.imported}:batchCreate`, { requests: [item] });
    expect(imported.status).toBe(400);
    expect(imported.text).toContain(`${field}: must not contain the character NUL`);
  }
});

/** Invalid UTF-8 (RFC 3629 §3), each as long as the string that it replaces. */
const NOT_UTF8 = [
  ["bytes that never occur", "fffeff"],
  ["a continuation byte without a lead byte", "618062"],
  ["a lead byte without a continuation byte", "61c328"],
  ["an overlong NUL", "c08061"],
  ["an overlong slash", "e080af"],
  ["a surrogate", "eda080"],
  ["a truncated sequence", "61e282"],
  ["a sequence beyond U+10FFFF", "f49080"],
] as const;

/** Occurs in no request by chance. */
const MARKER = "\u0001\u0002\u0001";

async function expectRefusedText(rpc: DescMethodUnary, body: Json, hex: string): Promise<void> {
  const bytes = replaceBytes(binary(rpc, body), Buffer.from(MARKER), Buffer.from(hex, "hex"));
  const connect = await send(suite.server.url + rpcPath(rpc), "POST", bytes, PROTO_TYPE);
  const refused = { code: "invalid_argument", reason: "INVALID_ARGUMENT", fields: ["body"] };
  expect({ body, status: connect.status, ...readConnectError(connect) }).toEqual({ body, status: 400, ...refused });
}

test.each(table(NOT_UTF8))("%s in Protobuf is refused over Connect", async (_, hex) => {
  const [rpc] = RPCS.filter(withText);
  if (rpc === undefined) throw new Error("no RPC has a text");
  for (const { body } of textFields(rpc.input, MARKER)) await expectRefusedText(rpc, body, hex);
});

test.each(table(RPCS.filter(withText)))("$name refuses invalid UTF-8 in every string field", async (rpc) => {
  const all = textFields(rpc.input, MARKER);
  for (const { body } of all) await expectRefusedText(rpc, body, "eda080");
  const bytes = replaceBytes(binary(rpc, all[0]?.body), Buffer.from(MARKER), Buffer.from("eda080", "hex"));
  const grpc = await callGrpc(suite.server.url, rpcPath(rpc), frame(bytes));
  expect(grpc).toMatchObject({ status: Code.InvalidArgument, reason: "INVALID_ARGUMENT", fields: ["body"] });
});

function binary({ input }: DescMethodUnary, body: unknown): Buffer<ArrayBuffer> {
  return Buffer.from(toBinary(input, fromJson(input, JSON.parse(JSON.stringify(body)))));
}

function replaceBytes(bytes: Buffer<ArrayBuffer>, old: Buffer, replacement: Buffer): Buffer<ArrayBuffer> {
  const at = bytes.indexOf(old);
  if (at === -1 || old.length !== replacement.length) throw new Error("there is nothing to replace");
  replacement.copy(bytes, at);
  return bytes;
}
