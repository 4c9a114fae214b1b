import { join, resolve } from "node:path";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";

/** Envoy's own protos, by an implementation of Protobuf that Keyhold does not use. */

const DEPS = resolve(import.meta.dirname, "../../node_modules/@grpc/grpc-js-xds/deps");

const { Check: METHOD } = loadSync("envoy/service/auth/v3/external_auth.proto", {
  includeDirs: ["envoy-api", "googleapis", "protoc-gen-validate", "xds"].map((folder) => join(DEPS, folder)),
  ...{ defaults: true, arrays: true, objects: true, oneofs: true },
})["envoy.service.auth.v3.Authorization"] as ServiceDefinition;
if (METHOD === undefined) throw new Error("the package has no ext_authz");
const CHECK = METHOD;

/** A `CheckRequest`. */
export interface EnvoyCheck {
  readonly attributes?: {
    readonly source?: object | undefined;
    readonly request?: { readonly http?: object } | undefined;
    readonly contextExtensions?: Readonly<Record<string, string>>;
  };
}

/** Returns the bytes that Envoy sends. */
export function encodeCheck(request: EnvoyCheck): Buffer {
  return CHECK.requestSerialize(request);
}

/** Returns a `CheckRequest` with the values of all fields that it has. */
export function decodeCheck(bytes: Uint8Array): object {
  return CHECK.requestDeserialize(Buffer.from(bytes));
}

/** Returns a `CheckResponse` with the values of all fields that it has. */
export function decodeCheckResponse(bytes: Uint8Array): object {
  return CHECK.responseDeserialize(Buffer.from(bytes));
}
