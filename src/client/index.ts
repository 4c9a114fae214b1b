/** `@keyhold/client`: the client for Node, browsers and other runtimes with `fetch`. It imports no Node module. */
export { Code, ConnectError } from "@connectrpc/connect";
export * from "../../gen/keyhold/v2alpha1/actors_pb.js";
export * from "../../gen/keyhold/v2alpha1/api_key_pb.js";
export * from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
export * from "../../gen/keyhold/v2alpha1/audit_pb.js";
export * from "../../gen/keyhold/v2alpha1/callers_pb.js";
export * from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
export * from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
export * from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
export * from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
export * from "../../gen/keyhold/v2alpha1/key_pages_pb.js";
export * from "../../gen/keyhold/v2alpha1/self_service_pb.js";
export * from "../../gen/keyhold/v2alpha1/usage_pb.js";
export * from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
export { createKeyholdClient, type KeyholdClient, type KeyholdClientOptions } from "./client.ts";
export { errorReason, type FieldViolation, fieldViolations } from "./errors.ts";
export type { RetryOptions } from "./retries.ts";
export type { TokenSource } from "./token.ts";
