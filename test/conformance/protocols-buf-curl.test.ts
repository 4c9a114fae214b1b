import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { table, useService } from "../support/conformance.ts";
import { decodeDetails } from "../support/protocols/call.ts";
import { issue, type Json } from "../support/rest.ts";

/** `buf curl`, in Go, shares no code with the server. */
const suite = useService();

const root = fileURLToPath(new URL("../..", import.meta.url));

async function bufCurl(protocol: string, method: string, body: Json): Promise<Json> {
  const url = `${suite.server.url}/keyhold.v2alpha1.${method}`;
  const options = ["--schema", ".", "--protocol", protocol, "--http2-prior-knowledge", "--data", JSON.stringify(body)];
  return JSON.parse(await buf("curl", ...options, url));
}

async function buf(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(`${root}/node_modules/.bin/buf`, args, { cwd: root });
  return stdout;
}

const PROTOCOLS = ["grpc", "grpcweb", "connect"];

test.for(table(PROTOCOLS))("buf curl verifies a key over %s", async (protocol) => {
  const { secret: credential, keyId } = await issue(suite.rest);
  const verdict = await bufCurl(protocol, "ApiKeysService/VerifyApiKey", { credential });
  expect(verdict).toMatchObject({ isValid: true, keyId });
});

test.for(table(PROTOCOLS))("buf curl reads an error with its details over %s", async (protocol) => {
  const failed = bufCurl(protocol, "IssuedApiKeysService/GetIssuedApiKey", { key_id: "no: id" });
  const { stderr } = await failed.then(
    () => expect.fail("it must fail"),
    (error) => error,
  );
  const { code, message, details } = JSON.parse(stderr);
  expect({ code, message, details: decodeDetails(details.map(fromBase64)) }).toEqual({
    code: "invalid_argument",
    message: expect.stringMatching(/^key_id: /),
    details: {
      "google.rpc.ErrorInfo": { reason: "INVALID_ARGUMENT", domain: "keyhold", metadata: {} },
      "google.rpc.BadRequest": { field_violations: [expect.objectContaining({ field: "key_id" })] },
    },
  });
});

describe("without a schema, by server reflection", () => {
  test("buf curl lists the methods", async () => {
    const methods = await buf("curl", "--http2-prior-knowledge", "--list-methods", suite.server.url);
    const ours = SERVICES.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`));
    expect(methods.trim().split("\n")).toEqual(expect.arrayContaining(ours));
  });

  test("buf curl calls a method", async () => {
    const { secret: credential, keyId } = await issue(suite.rest);
    const options = ["--http2-prior-knowledge", "--data", JSON.stringify({ credential })];
    const verdict = await buf("curl", ...options, `${suite.server.url}/keyhold.v2alpha1.ApiKeysService/VerifyApiKey`);
    expect(JSON.parse(verdict)).toMatchObject({ isValid: true, keyId });
  });
});

function fromBase64({ type, value }: { type: string; value: string }) {
  return { type, value: Buffer.from(value, "base64") };
}
