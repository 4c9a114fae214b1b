import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BatchCreateImportedApiKeysError,
  type BatchCreateImportedApiKeysResponse_ResultSchema,
  BatchCreateImportedApiKeysResponseSchema,
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
  type ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { type ErrorCode, KeyholdError } from "../../domain/errors.ts";
import type { ApiKey } from "../../domain/key.ts";
import type { Principal } from "../../domain/principal.ts";
import { importKeys } from "../../keys/import.ts";
import { mapInSlices } from "../../lib/time-slices.ts";
import { CODES, toConnectError } from "../errors.ts";
import { logKeys } from "../log-fields.ts";
import type { ApiContext, Handler } from "../row.ts";
import { violationError, violationsOf } from "../validation.ts";
import { importedApiKey } from "./key-resources.ts";

type Outcome = ApiKey | KeyholdError;
type Result = MessageInitShape<typeof BatchCreateImportedApiKeysResponse_ResultSchema>;

/** Codes of an item that was not imported; any other error is INTERNAL. */
const ITEM_ERRORS: ReadonlyMap<ErrorCode, BatchCreateImportedApiKeysError> = new Map([
  ["INVALID_ARGUMENT", BatchCreateImportedApiKeysError.INVALID_ARGUMENT],
  ["CALLER_NOT_PERMITTED", BatchCreateImportedApiKeysError.INVALID_ARGUMENT],
  ["RAW_KEY_ALREADY_EXISTS", BatchCreateImportedApiKeysError.ALREADY_EXISTS],
  ["REQUEST_ID_REUSED", BatchCreateImportedApiKeysError.ALREADY_EXISTS],
]);

export function batchCreateImportedApiKeys({
  keys,
}: ApiContext): Handler<typeof ImportedApiKeysService.method.batchCreateImportedApiKeys> {
  const importValid = async (requests: readonly CreateImportedApiKeyRequest[], principal: Principal) => {
    const outcomes = await mapInSlices(requests, validateItem);
    const valid = requests.filter((_, index) => outcomes[index] === null);
    const imported = (await importKeys(keys, principal, valid)).values();
    return outcomes.map((outcome): Outcome => outcome ?? imported.next().value ?? internal());
  };
  return async ({ requests }, principal, call) => {
    const outcomes = await importValid(requests, principal);
    logKeys(
      call.log,
      outcomes.flatMap((outcome) => (outcome instanceof KeyholdError ? [] : [outcome.keyId])),
    );
    const now = keys.clock.now();
    const failures = outcomes.filter((outcome) => outcome instanceof KeyholdError);
    const response = {
      results: outcomes.map((outcome, index) => toResult(outcome, index, now)),
      successCount: outcomes.length - failures.length,
      failureCount: failures.length,
    };
    if (failures.length < outcomes.length) return response;
    const desc = BatchCreateImportedApiKeysResponseSchema;
    throw toConnectError(allFailed(failures), [{ desc, value: create(desc, response) }]);
  };
}

function validateItem(request: CreateImportedApiKeyRequest): KeyholdError | null {
  const violations = violationsOf(CreateImportedApiKeyRequestSchema, request);
  return violations.length === 0 ? null : violationError(violations);
}

function toResult(outcome: Outcome, index: number, now: number): Result {
  if (!(outcome instanceof KeyholdError)) return { index, importedApiKey: importedApiKey(outcome, now) };
  return {
    index,
    errorCode: ITEM_ERRORS.get(outcome.code) ?? BatchCreateImportedApiKeysError.INTERNAL,
    errorMessage: outcome.message,
  };
}

/** Returns the error of the items if they agree in its status, otherwise INVALID_ARGUMENT. */
function allFailed(failures: readonly KeyholdError[]): KeyholdError {
  const [code, ...others] = new Set(failures.map((failure) => failure.code));
  const isCommon = code !== undefined && others.every((other) => CODES[other] === CODES[code]);
  const message = `none of the ${failures.length} keys was imported; the details say why of each`;
  return new KeyholdError(isCommon ? code : "INVALID_ARGUMENT", message);
}

function internal(): KeyholdError {
  return new KeyholdError("INTERNAL", "internal error");
}
