import {
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { importInput } from "../../api/v2alpha1/import-input.ts";
import { parseValid } from "../../api/validation.ts";
import { KeyholdError } from "../../domain/errors.ts";
import { UNLIMITED } from "../../domain/expiry.ts";
import { parseNewImport } from "../../keys/import.ts";
import { systemClock } from "../../lib/clock.ts";
import type { RowOptions } from "./fields.ts";
import type { Row } from "./records.ts";
import { rowRequest } from "./row-request.ts";

/** Returns the request of a row without its `request_id`, or an error message that quotes no value. */
export function requestOf({ content }: Row, options: RowOptions): CreateImportedApiKeyRequest | string {
  if (typeof content === "string") return content;
  try {
    const request = rowRequest(content, options);
    requireImportable(request);
    return request;
  } catch (error) {
    if (error instanceof KeyholdError) return error.message;
    throw error;
  }
}

/**
 * Applies the server's rules locally, so that invalid rows cost no call and `--dry-run` needs no server. The prefix of issued secrets is
 * not checked: only the server has it.
 */
function requireImportable(request: CreateImportedApiKeyRequest): void {
  const local = { clock: systemClock, lifetimes: UNLIMITED, looksLikeOurs: () => false };
  parseValid(CreateImportedApiKeyRequestSchema, request, (message) => parseNewImport(local, importInput(message)));
}
