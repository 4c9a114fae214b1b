import { createRegistry } from "@bufbuild/protobuf";
import { file_google_rpc_error_details } from "../../../../gen/google/rpc/error_details_pb.js";
import { file_keyhold_v2alpha1_api_keys } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { file_keyhold_v2alpha1_derived_keys } from "../../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { file_keyhold_v2alpha1_imported_api_keys } from "../../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { file_keyhold_v2alpha1_issued_api_keys } from "../../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { file_keyhold_v2alpha1_self_service } from "../../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { KeyholdError } from "../../../../src/domain/errors.ts";

export const registry = createRegistry(
  file_keyhold_v2alpha1_api_keys,
  file_keyhold_v2alpha1_derived_keys,
  file_keyhold_v2alpha1_imported_api_keys,
  file_keyhold_v2alpha1_issued_api_keys,
  file_keyhold_v2alpha1_self_service,
  file_google_rpc_error_details,
);

export type Outcome<T> = { readonly value: T } | { readonly error: Readonly<Record<string, unknown>> };

/** Returns the result of a call, or its error, in a comparable form. */
export function outcomeOf<T>(call: () => T): Outcome<T> {
  try {
    return { value: call() };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const { name, message } = error;
    if (!(error instanceof KeyholdError)) return { error: { name, message } };
    return { error: { name, message, code: error.code, violations: error.violations, metadata: error.metadata } };
  }
}
