import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { buffer } from "node:stream/consumers";
import { create, createFileRegistry, fromBinary, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { field as fieldRules } from "../../../gen/buf/validate/validate_pb.js";
import { http } from "../../../gen/google/api/annotations_pb.js";
import {
  ServerReflection,
  type ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { SERVICES } from "../../../src/api/v2alpha1/rpcs.ts";
import { MAX_REQUESTS } from "../../../src/transport/services/reflection.ts";
import { table, useService } from "../../support/conformance.ts";
import { frame } from "../../support/wire.ts";

const suite = useService();

type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

const grpc = () => createGrpcTransport({ baseUrl: suite.server.url });
const connect = () => createConnectTransport({ baseUrl: suite.server.url, httpVersion: "2" });

/** Sends the requests in one stream. */
async function ask(...questions: Question[]): Promise<ServerReflectionResponse["messageResponse"][]> {
  const requests = questions.map((messageRequest) => ({ host: "a host", messageRequest }));
  const answers = createClient(ServerReflection, grpc()).serverReflectionInfo(iterate(requests));
  return (await Array.fromAsync(answers)).map(({ messageResponse }) => messageResponse);
}

async function* iterate<T>(items: Iterable<T>) {
  yield* items;
}

function filesOf(answer: ServerReflectionResponse["messageResponse"] | undefined) {
  if (answer?.case !== "fileDescriptorResponse") throw new Error(`no files but ${answer?.case}`);
  return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

const namesOf = (answer: Parameters<typeof filesOf>[0]) => filesOf(answer).map(({ name }) => name);

const SERVICE_NAMES = [
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
  ...SERVICES.map(({ typeName }) => typeName).sort(),
];

describe("the services", () => {
  const services = SERVICE_NAMES.map((name) => expect.objectContaining({ name }));

  test.for(
    table([
      ["gRPC", grpc],
      ["Connect over HTTP/2", connect],
    ] as const),
  )("are listed over %s by both versions", async ([, transport]) => {
    const messageRequest = { case: "listServices", value: "" } as const;
    for (const version of [ServerReflection, ServerReflectionAlpha]) {
      const client = createClient<typeof ServerReflection | typeof ServerReflectionAlpha>(version, transport());
      const [answer] = await Array.fromAsync(client.serverReflectionInfo(iterate([{ host: "h", messageRequest }])));
      const messageResponse = { case: "listServicesResponse", value: expect.objectContaining({ service: services }) };
      expect(answer).toMatchObject({ validHost: "h", originalRequest: { host: "h", messageRequest }, messageResponse });
    }
  });
});

/** Orders files so that each comes after its imports. */
function importedFirst(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const ordered = new Set<FileDescriptorProto>();
  const visit = (file: FileDescriptorProto) => {
    for (const name of file.dependency) files.filter((other) => other.name === name).forEach(visit);
    ordered.add(file);
  };
  files.forEach(visit);
  return [...ordered];
}

describe("a file", () => {
  const API_KEYS = "keyhold/v2alpha1/api_keys.proto";

  test.for(
    table([
      ["a service", "keyhold.v2alpha1.ApiKeysService", API_KEYS],
      ["a method", "keyhold.v2alpha1.ApiKeysService.VerifyApiKey", API_KEYS],
      ["a message", "keyhold.v2alpha1.VerifyApiKeyRequest", API_KEYS],
      ["a field", "keyhold.v2alpha1.VerifyApiKeyRequest.credential", API_KEYS],
      [
        "a message in a message",
        "keyhold.v2alpha1.BatchCreateImportedApiKeysResponse.Result",
        "keyhold/v2alpha1/imported_api_keys.proto",
      ],
      ["an enum", "keyhold.v2alpha1.TokenAlgorithm", API_KEYS],
      ["a value of an enum", "keyhold.v2alpha1.TOKEN_ALGORITHM_JWT", API_KEYS],
      ["a oneof", "buf.validate.FieldRules.type", "buf/validate/validate.proto"],
      ["an extension", "google.api.http", "google/api/annotations.proto"],
      ["health", "grpc.health.v1.Health", "health/v1/health.proto"],
      [
        "reflection itself",
        "grpc.reflection.v1alpha.ServerReflectionRequest",
        "grpc/reflection/v1alpha/reflection.proto",
      ],
    ] as const),
  )("is found by %s", async ([, value, file]) => {
    const [answer] = await ask({ case: "fileContainingSymbol", value });
    expect(namesOf(answer)[0]).toBe(file);
  });

  test("is found by its name, with its dependencies, each once per stream", async () => {
    const question: Question = { case: "fileByFilename", value: API_KEYS };
    const other: Question = { case: "fileByFilename", value: "keyhold/v2alpha1/self_service.proto" };
    const [first, again, another] = await ask(question, question, other);
    expect(namesOf(first)).toEqual([
      API_KEYS,
      "buf/validate/validate.proto",
      "google/api/annotations.proto",
      "google/api/field_behavior.proto",
      "google/protobuf/any.proto",
      "google/protobuf/duration.proto",
      "google/protobuf/struct.proto",
      "google/protobuf/timestamp.proto",
      "keyhold/v2alpha1/api_key.proto",
      "google/protobuf/descriptor.proto",
      "google/protobuf/field_mask.proto",
      "google/api/http.proto",
    ]);
    expect(namesOf(again)).toEqual([API_KEYS]);
    expect(namesOf(another)).toEqual(["keyhold/v2alpha1/self_service.proto"]);
  });

  test("is complete with its options", async () => {
    const [answer] = await ask({ case: "fileByFilename", value: API_KEYS });
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: importedFirst(filesOf(answer)) }));
    const method = registry.getService("keyhold.v2alpha1.ApiKeysService")?.method.verifyApiKey;
    const credential = registry.getMessage("keyhold.v2alpha1.VerifyApiKeyRequest")?.field.credential;
    if (method === undefined || credential === undefined) return expect.fail("the file does not declare them");
    expect(getOption(method, http).pattern.value).toBe("/v2alpha1/admin/apiKeys:verify");
    expect(getOption(credential, fieldRules).required).toBe(true);
  });

  test("is found by an extension in it", async () => {
    const value = { containingType: "google.protobuf.FieldOptions", extensionNumber: fieldRules.number };
    const [answer, numbers, none] = await ask(
      { case: "fileContainingExtension", value },
      { case: "allExtensionNumbersOfType", value: "google.protobuf.FieldOptions" },
      { case: "allExtensionNumbersOfType", value: "google.protobuf.Timestamp" },
    );
    expect(namesOf(answer)[0]).toBe("buf/validate/validate.proto");
    expect(numbers).toMatchObject({ value: { extensionNumber: [1052, 1159, 1160] } });
    expect(none).toMatchObject({ case: "allExtensionNumbersResponse", value: { extensionNumber: [] } });
  });
});

test("an unknown name is NOT_FOUND, and the stream continues", async () => {
  const answers = await ask(
    { case: "fileByFilename", value: "no.proto" },
    { case: "fileContainingSymbol", value: "keyhold.v2alpha1.Nothing" },
    { case: "fileContainingExtension", value: { containingType: "google.protobuf.FieldOptions", extensionNumber: 1 } },
    { case: "allExtensionNumbersOfType", value: "keyhold.v2alpha1.Nothing" },
  );
  const refused = { case: "errorResponse", value: { errorCode: Code.NotFound, errorMessage: /no such/ } };
  expect(answers).toMatchObject(answers.map(() => ({ ...refused, value: { errorCode: Code.NotFound } })));
});

describe("a stream has a limit", () => {
  const failure = (questions: Iterable<{ messageRequest?: Question }>) =>
    Array.fromAsync(createClient(ServerReflection, grpc()).serverReflectionInfo(iterate(questions))).then(
      () => expect.fail("it must fail"),
      (reason) => ConnectError.from(reason),
    );

  test("on the number of requests", async () => {
    const messageRequest: Question = { case: "fileByFilename", value: "no.proto" };
    const { code, rawMessage } = await failure(Array.from({ length: MAX_REQUESTS + 1 }, () => ({ messageRequest })));
    expect([code, rawMessage]).toEqual([
      Code.ResourceExhausted,
      `a stream allows at most ${MAX_REQUESTS} requests; open another stream`,
    ]);
  });

  test("on the size of a request", async () => {
    const { code } = await failure([{ messageRequest: { case: "fileByFilename", value: "x".repeat(5000) } }]);
    expect(code).toBe(Code.ResourceExhausted);
  });

  test("on the kinds of requests", async () => {
    expect((await failure([{}])).code).toBe(Code.InvalidArgument);
  });
});

test("a stream ends when the server stops, without a delay", async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  async function* requests() {
    yield { messageRequest: { case: "listServices", value: "" } } as const;
    await held;
  }
  const answers = createClient(ServerReflection, grpc()).serverReflectionInfo(requests())[Symbol.asyncIterator]();
  expect((await answers.next()).done).toBe(false);
  const restarted = suite.server.restart();
  await expect(answers.next()).resolves.toMatchObject({ done: true });
  release();
  await restarted;
});

/** Returns the responses to a list request whose envelope has these flags. */
async function askWithFlags(type: string, flags: number): Promise<{ status: number; messages: number }> {
  const session = connectHttp2(suite.server.url);
  const path = `/${ServerReflection.typeName}/ServerReflectionInfo`;
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": type, te: "trailers" });
  stream.end(frame(Buffer.from([0x3a, 0]), { flags }));
  const [[header], bytes] = await Promise.all([once(stream, "response"), buffer(stream)]);
  session.destroy();
  let messages = 0;
  // The last envelope has flags: it ends the stream.
  for (let at = 0; at < bytes.length && bytes[at] === 0; at += 5 + bytes.readUInt32BE(at + 1)) messages++;
  return { status: header[":status"], messages };
}

/** Like connect-es, the reference implementation; neither specification defines this for a server. */
describe("flags of an envelope", () => {
  test.each(["application/connect+proto", "application/grpc+proto"])(
    "that are undefined are ignored in %s",
    async (type) => {
      for (const flags of [0x04, 0x40, 0x7c]) {
        expect(await askWithFlags(type, flags)).toEqual({ status: 200, messages: 1 });
      }
    },
  );

  test("a client's end-of-stream envelope contains no message", async () => {
    expect(await askWithFlags("application/connect+proto", 0x02)).toEqual({ status: 200, messages: 0 });
  });
});
