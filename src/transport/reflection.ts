import {
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.js";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  type ServerReflectionRequest as AlphaRequest,
  ServerReflection as ServerReflectionAlpha,
} from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { StreamingRpc } from "./connect/register.ts";

const METHOD = ServerReflection.method.serverReflectionInfo;
const METHOD_ALPHA = ServerReflectionAlpha.method.serverReflectionInfo;

/** Requests are names. */
const MAX_REQUEST_BYTES = 4096;

/** Maximum number of requests per stream; a complete description takes about twenty. Limits the load that reflection can cause. */
export const MAX_REQUESTS = 200;

interface Request {
  readonly host: string;
  readonly messageRequest: Question;
}

/**
 * Creates the standard server reflection (grpc.reflection.v1, and v1alpha for older clients) of these services and of itself. `stopping`
 * ends the streams, which would otherwise keep their connections open. Built on the first request.
 */
export function createReflection(services: readonly DescService[], stopping: AbortSignal): readonly StreamingRpc[] {
  const all = [...services, ServerReflection, ServerReflectionAlpha];
  const names = all.map(({ typeName }) => typeName).sort();
  let catalog: Catalog | undefined;
  const reflect = async function* <R extends Request>(requests: AsyncIterable<R>) {
    // No message references the types of error details, and clients need their definitions to show them.
    catalog ??= new Catalog([...all.map(({ file }) => file), file_google_rpc_error_details]);
    const sent = new Set<DescFile>();
    let count = 0;
    for await (const originalRequest of until(requests, stopping)) {
      if (++count > MAX_REQUESTS) throw tooMany();
      const { host: validHost, messageRequest } = originalRequest;
      yield { validHost, originalRequest, messageResponse: answer(catalog, names, sent, messageRequest) };
    }
  };
  const common = { policy: "public", maxRequestBytes: MAX_REQUEST_BYTES, serve: reflect } as const;
  const v1: StreamingRpc<typeof METHOD> = { method: METHOD, ...common };
  const v1alpha: StreamingRpc<typeof METHOD_ALPHA> = { method: METHOD_ALPHA, ...common };
  return [v1, v1alpha];
}

function tooMany(): ConnectError {
  return new ConnectError(`a stream may ask ${MAX_REQUESTS} times; open another`, Code.ResourceExhausted);
}

/** Yields the items until they end or the signal aborts. */
async function* until<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]();
  const { promise: stopped, resolve } = Promise.withResolvers<IteratorResult<T>>();
  const stop = () => resolve({ done: true, value: undefined });
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), stopped]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    // Not awaited, because it waits for the next item.
    void iterator.return?.().catch(() => undefined);
  }
}

/** `v1alpha` has the same messages as `v1` in another package. */
type Question = (ServerReflectionRequest | AlphaRequest)["messageRequest"];

/**
 * Answers one request of a stream. `sent` are the files that the stream has already sent: they are not sent again as dependencies, as in
 * grpc-go. Throws `INVALID_ARGUMENT` for an empty request.
 */
function answer(catalog: Catalog, services: readonly string[], sent: Set<DescFile>, question: Question) {
  const filesFrom = (file: DescFile | undefined) => (file === undefined ? NOT_FOUND : files(catalog, sent, file));
  switch (question.case) {
    case "fileByFilename":
      return filesFrom(catalog.file(question.value));
    case "fileContainingSymbol":
      return filesFrom(catalog.fileOfSymbol(question.value));
    case "fileContainingExtension":
      return filesFrom(catalog.fileOfExtension(question.value.containingType, question.value.extensionNumber));
    case "allExtensionNumbersOfType":
      return extensionNumbers(catalog, question.value);
    case "listServices":
      return { case: "listServicesResponse", value: { service: services.map((name) => ({ name })) } } as const;
    default:
      throw new ConnectError("message_request: value is required", Code.InvalidArgument);
  }
}

/** Returns the file and those of its dependencies that the client does not have. */
function files(catalog: Catalog, sent: Set<DescFile>, file: DescFile) {
  const chosen = new Set([file]);
  // Iterating over a set includes items added during the iteration.
  for (const { dependencies } of chosen) {
    for (const dependency of dependencies) if (!sent.has(dependency)) chosen.add(dependency);
  }
  for (const one of chosen) sent.add(one);
  const fileDescriptorProto = [...chosen].map((one) => catalog.bytesOf(one));
  return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto } };
}

function extensionNumbers(catalog: Catalog, baseTypeName: string) {
  const extensionNumber = catalog.extensionNumbers(baseTypeName);
  if (extensionNumber === undefined) return NOT_FOUND;
  return { case: "allExtensionNumbersResponse" as const, value: { baseTypeName, extensionNumber } };
}

const NOT_FOUND = {
  case: "errorResponse",
  value: { errorCode: Code.NotFound, errorMessage: "there is no such file, symbol or extension here" },
} as const;

type NestedType = DescMessage | DescEnum | DescExtension | DescService;

/** The files that server reflection describes, and their declarations by name. */
export class Catalog {
  readonly #files = new Map<string, DescFile>();
  /** Files by the full names of their symbols, without a leading dot. */
  readonly #symbols = new Map<string, DescFile>();
  readonly #extensions: DescExtension[] = [];
  readonly #bytes = new Map<DescFile, Uint8Array>();

  /** Creates the catalog of these files and all their imports. */
  constructor(files: Iterable<DescFile>) {
    const all = new Set(files);
    for (const file of all) {
      this.#add(file);
      // Iterating over a set includes items added during the iteration.
      for (const dependency of file.dependencies) all.add(dependency);
    }
  }

  file(name: string): DescFile | undefined {
    return this.#files.get(name);
  }

  /** Returns the file that declares a service, method, message, field, oneof, enum, enum value or extension. */
  fileOfSymbol(name: string): DescFile | undefined {
    return this.#symbols.get(name);
  }

  fileOfExtension(message: string, number: number): DescFile | undefined {
    return this.#extensionsOf(message).find((extension) => extension.number === number)?.file;
  }

  /** Returns undefined if neither the message nor an extension of it is known. */
  extensionNumbers(message: string): number[] | undefined {
    const numbers = this.#extensionsOf(message).map(({ number }) => number);
    return numbers.length > 0 || this.#symbols.has(message) ? numbers.sort((a, b) => a - b) : undefined;
  }

  /** Returns a `google.protobuf.FileDescriptorProto` with its options. */
  bytesOf(file: DescFile): Uint8Array {
    const bytes = this.#bytes.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
    this.#bytes.set(file, bytes);
    return bytes;
  }

  #extensionsOf(message: string): DescExtension[] {
    return this.#extensions.filter(({ extendee }) => extendee.typeName === message);
  }

  #add(file: DescFile): void {
    this.#files.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      for (const symbol of [type.typeName, ...memberNames(type)]) this.#symbols.set(symbol, file);
      if (type.kind === "extension") this.#extensions.push(type);
    }
  }
}

function memberNames(type: NestedType): string[] {
  const within = ({ name }: { readonly name: string }) => `${type.typeName}.${name}`;
  switch (type.kind) {
    case "message":
      return [...type.fields, ...type.oneofs].map(within);
    case "service":
      return type.methods.map(within);
    case "enum":
      // Enum values are siblings of their enum, not children (descriptor.proto, "EnumValueDescriptorProto").
      return type.values.map(({ name }) => type.typeName.replace(/[^.]*$/, name));
    default:
      return [];
  }
}
