import {
  create,
  createRegistry,
  type DescFile,
  type DescMethodUnary,
  type MessageInitShape,
  type Registry,
} from "@bufbuild/protobuf";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import type { Rpc } from "../../api/rpc.ts";
import { compileJsonWriter } from "../json/writer.ts";
import { type Binding, type BodyRule, readBindings } from "./binding.ts";
import { bodyReader } from "./body-reader.ts";
import { PathRouter } from "./path-router.ts";
import type { PathTemplate } from "./path-template.ts";
import { type DecodeRequest, requestDecoder } from "./request-decoder.ts";
import { responseEncoder } from "./response.ts";

/** What a path and an HTTP method lead to. */
export interface Route {
  readonly rpc: Rpc;
  readonly body: BodyRule;
  readonly decode: DecodeRequest;
  /** The JSON of an answer, which need not be a message yet. */
  readonly encode: (response: MessageInitShape<DescMethodUnary["output"]>) => string;
}

export interface Routes {
  readonly router: PathRouter<Route>;
  /** Every path template, with its HTTP method. */
  readonly templates: readonly { readonly httpMethod: string; readonly template: PathTemplate }[];
  /** The types that answers and error details may hold. */
  readonly registry: Registry;
}

/**
 * The routes of RPCs by the `google.api.http` annotations of their methods (google/api/http.proto). `more` are types for
 * `google.protobuf.Any` and error details, besides those of the RPCs' files and what they import. Throws `Error` if an annotation
 * is wrong or two bindings collide.
 */
export function makeRoutes(rpcs: readonly Rpc[], more: Registry = createRegistry()): Routes {
  const registry = registryOf(rpcs, more);
  const router = new PathRouter<Route>();
  const templates: Routes["templates"][number][] = [];
  for (const rpc of rpcs) {
    for (const binding of readBindings(rpc.method)) {
      const { httpMethod, template } = binding;
      router.add(httpMethod, template, makeRoute(rpc, binding, registry));
      templates.push({ httpMethod, template });
    }
  }
  return { router, templates, registry };
}

function makeRoute(rpc: Rpc, binding: Binding, registry: Registry): Route {
  const { input } = rpc.method;
  const decode = requestDecoder(input, binding, bodyReader(input, binding.body, registry));
  return { rpc, body: binding.body, decode, encode: encoderOf(rpc, binding, registry) };
}

function encoderOf({ method: { output } }: Rpc, { responseBody }: Binding, registry: Registry): Route["encode"] {
  if (responseBody === undefined) return compileJsonWriter(output, { registry });
  const encode = responseEncoder(output, responseBody, registry);
  return (response) => encode(create(output, response));
}

function registryOf(rpcs: readonly Rpc[], more: Registry): Registry {
  const files = new Set<DescFile>([file_google_rpc_error_details]);
  for (const { method } of rpcs) addWithImports(files, method.parent.file);
  return createRegistry(...files, more);
}

function addWithImports(files: Set<DescFile>, file: DescFile): void {
  if (files.has(file)) return;
  files.add(file);
  for (const dependency of file.dependencies) addWithImports(files, dependency);
}
