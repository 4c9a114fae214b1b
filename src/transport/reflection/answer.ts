import type { DescFile } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ServerReflectionRequest } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import type { ServerReflectionRequest as AlphaRequest } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { Catalog } from "./catalog.ts";

/** What `v1alpha` asks is what `v1` asks, under another package. */
export type Question = (ServerReflectionRequest | AlphaRequest)["messageRequest"];

/**
 * Answers one question of a stream. `sent` are the files that the stream has brought already: they are left out of what comes
 * along with another, as in grpc-go. Throws `INVALID_ARGUMENT` if nothing is asked for.
 */
export function answer(catalog: Catalog, services: readonly string[], sent: Set<DescFile>, question: Question) {
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

/** The file, and of those that it needs what the caller has not yet. */
function files(catalog: Catalog, sent: Set<DescFile>, file: DescFile) {
  const chosen = new Set([file]);
  // A set is walked with what is added meanwhile.
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
