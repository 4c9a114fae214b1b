import { createRegistry, type DescFile, type Registry } from "@bufbuild/protobuf";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import type { Rpc } from "../../api/rpc.ts";
import { valueLimits } from "../json/scan.ts";
import { type BodyRule, readRestRules } from "./http-rule.ts";
import { PathRouter } from "./path-router.ts";
import type { PathTemplate } from "./path-template.ts";
import { type DecodeRequest, requestDecoder } from "./request-decoder.ts";

/** What a path and an HTTP method lead to. */
export interface Route {
  readonly rpc: Rpc;
  readonly body: BodyRule;
  readonly decode: DecodeRequest;
}

export interface Routes {
  readonly router: PathRouter<Route>;
  readonly templates: readonly PathTemplate[];
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
  const templates: PathTemplate[] = [];
  for (const rpc of rpcs) {
    for (const binding of readRestRules(rpc.method)) {
      const { httpMethod, template, body } = binding;
      const decode = requestDecoder(rpc.method.input, binding, valueLimits(rpc.maxRequestBytes), registry);
      router.add(httpMethod, template, { rpc, body, decode });
      templates.push(template);
    }
  }
  return { router, templates, registry };
}

function registryOf(rpcs: readonly Rpc[], more: Registry): Registry {
  const files = new Set<DescFile>([file_google_rpc_error_details, ...rpcs.map(({ method }) => method.parent.file)]);
  // A set is walked with what is added meanwhile.
  for (const { dependencies } of files) for (const dependency of dependencies) files.add(dependency);
  return createRegistry(...files, more);
}
