import {
  createRegistry,
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import { ServerReflection, type ServerReflectionRequest } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  type ServerReflectionRequest as AlphaRequest,
  ServerReflection as ServerReflectionAlpha,
} from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { iterate } from "../../lib/iterate.ts";
import { memoizeByIdentity } from "../../lib/memoize.ts";
import { raceSignal } from "../../lib/race-signal.ts";
import type { StreamingRpc } from "../connect/streams.ts";

const METHOD = ServerReflection.method.serverReflectionInfo;
const METHOD_ALPHA = ServerReflectionAlpha.method.serverReflectionInfo;

/** Requests are names. */
const MAX_REQUEST_BYTES = 4096;

/** Maximum number of requests per stream; a complete description takes about twenty. Limits the load that reflection can cause. */
export const MAX_REQUESTS = 200;

/** `v1alpha` has the same messages as `v1` in another package. */
type Request = ServerReflectionRequest | AlphaRequest;

/**
 * Creates the standard server reflection (grpc.reflection.v1, and v1alpha for older clients) of these services and of itself. `stopping`
 * ends the streams, which would otherwise keep their connections open. Built on the first request.
 */
export function createReflection(services: readonly DescService[], stopping: AbortSignal): readonly StreamingRpc[] {
  let answer: ReturnType<typeof createCatalog> | undefined;
  const reflect = async function* <R extends Pick<Request, "host" | "messageRequest">>(requests: AsyncIterable<R>) {
    answer ??= createCatalog([...services, ServerReflection, ServerReflectionAlpha]);
    const sent = new Set<DescFile>();
    let count = 0;
    for await (const originalRequest of until(requests, stopping)) {
      if (++count > MAX_REQUESTS) {
        throw new ConnectError(
          `a stream allows at most ${MAX_REQUESTS} requests; open another stream`,
          Code.ResourceExhausted,
        );
      }
      const { host: validHost, messageRequest } = originalRequest;
      yield { validHost, originalRequest, messageResponse: answer(messageRequest, sent) };
    }
  };
  const common = { policy: "public", maxRequestBytes: MAX_REQUEST_BYTES, serve: reflect } as const;
  const v1: StreamingRpc<typeof METHOD> = { method: METHOD, ...common };
  const v1alpha: StreamingRpc<typeof METHOD_ALPHA> = { method: METHOD_ALPHA, ...common };
  return [v1, v1alpha];
}

/** Yields the items until they end or the signal aborts. */
async function* until<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  try {
    yield* iterate(items, (next) => raceSignal(signal, next()));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const NOT_FOUND = {
  case: "errorResponse",
  value: { errorCode: Code.NotFound, errorMessage: "no such file, symbol or extension" },
} as const;

const bytesOf = memoizeByIdentity((file: DescFile) => toBinary(FileDescriptorProtoSchema, file.proto));

/**
 * Returns a function that answers a request about services and the files that declare them. Files that its stream has `sent` are not sent
 * again as dependencies. Throws `INVALID_ARGUMENT` for an empty request.
 */
function createCatalog(services: readonly DescService[]) {
  const service = services.map(({ typeName }) => ({ name: typeName })).sort((a, b) => (a.name < b.name ? -1 : 1));
  // No message references the types of error details, and clients need their definitions to show them.
  const all = withImports([...services.map(({ file }) => file), file_google_rpc_error_details]);
  const files = new Map(Array.from(all, (file) => [file.proto.name, file]));
  const registry = createRegistry(...all);
  const symbols = new Map([...registry].flatMap((type) => symbolsOf(type).map((name) => [name, type.file])));
  return (question: Request["messageRequest"], sent: Set<DescFile>) => {
    switch (question.case) {
      case "fileByFilename":
        return send(files.get(question.value), sent);
      case "fileContainingSymbol":
        return send(symbols.get(question.value), sent);
      case "fileContainingExtension": {
        const message = registry.getMessage(question.value.containingType);
        return send(message && registry.getExtensionFor(message, question.value.extensionNumber)?.file, sent);
      }
      case "allExtensionNumbersOfType": {
        if (!symbols.has(question.value)) return NOT_FOUND;
        const extensions = [...registry].filter((type) => type.kind === "extension");
        const ofType = extensions.filter(({ extendee }) => extendee.typeName === question.value);
        const extensionNumber = ofType.map(({ number }) => number).sort((a, b) => a - b);
        return {
          case: "allExtensionNumbersResponse",
          value: { baseTypeName: question.value, extensionNumber },
        } as const;
      }
      case "listServices":
        return { case: "listServicesResponse", value: { service } } as const;
      default:
        throw new ConnectError("message_request: is required", Code.InvalidArgument);
    }
  };
}

/** Sends a file and those of its imports that the client does not have. */
function send(file: DescFile | undefined, sent: Set<DescFile>) {
  if (file === undefined) return NOT_FOUND;
  const files = withImports([file], sent);
  for (const each of files) sent.add(each);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto: Array.from(files, bytesOf) } } as const;
}

/** Returns the full names of a type and its members. */
function symbolsOf(type: DescMessage | DescEnum | DescExtension | DescService): string[] {
  const { typeName } = type;
  // Enum values are siblings of their enum, not children (descriptor.proto, "EnumValueDescriptorProto").
  if (type.kind === "enum") return [typeName, ...type.values.map(({ name }) => typeName.replace(/[^.]*$/, name))];
  const members =
    type.kind === "message" ? [...type.fields, ...type.oneofs] : type.kind === "service" ? type.methods : [];
  return [typeName, ...members.map(({ name }) => `${typeName}.${name}`)];
}

/** Returns files and their imports, except `excluded`. */
export function withImports(files: readonly DescFile[], excluded: ReadonlySet<DescFile> = new Set()): Set<DescFile> {
  const all = new Set(files);
  // Iterating over a set includes items added during the iteration.
  for (const { dependencies } of all) for (const file of dependencies) if (!excluded.has(file)) all.add(file);
  return all;
}
