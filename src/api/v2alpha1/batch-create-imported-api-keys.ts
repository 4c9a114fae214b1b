import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BatchCreateImportedApiKeysError,
  type BatchCreateImportedApiKeysResponse_ResultSchema,
  BatchCreateImportedApiKeysResponseSchema,
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
  type ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { rawKeyWarnings } from "../../credential/header-form.ts";
import { attempt, type ErrorCode, KeyholdError } from "../../domain/errors.ts";
import type { ApiKey } from "../../domain/key.ts";
import { callerName, type Principal } from "../../domain/principal.ts";
import { countFitting, errorSize, requireFit, responseSize } from "../../domain/response-size.ts";
import { importKeys, type ParsedImport, parseNewImport } from "../../keys/import.ts";
import { mapInSlices } from "../../lib/time-slices.ts";
import { CODES, toConnectError } from "../errors.ts";
import { logKeys } from "../log-fields.ts";
import type { ApiContext, Handler } from "../row.ts";
import { parseValid } from "../validation.ts";
import { importInput } from "./import-input.ts";
import { importedApiKey } from "./key-resources.ts";

type Outcome = ApiKey | KeyholdError;
type Result = MessageInitShape<typeof BatchCreateImportedApiKeysResponse_ResultSchema>;

/** Codes of an item that was not imported; any other error is INTERNAL. */
const ITEM_ERRORS: ReadonlyMap<ErrorCode, BatchCreateImportedApiKeysError> = new Map([
  ["INVALID_ARGUMENT", BatchCreateImportedApiKeysError.INVALID_ARGUMENT],
  ["CALLER_NOT_PERMITTED", BatchCreateImportedApiKeysError.INVALID_ARGUMENT],
  ["TOO_MANY_HASH_SCHEMES", BatchCreateImportedApiKeysError.INVALID_ARGUMENT],
  ["TOO_MANY_PREFIX_LENGTHS", BatchCreateImportedApiKeysError.INVALID_ARGUMENT],
  ["RAW_KEY_ALREADY_EXISTS", BatchCreateImportedApiKeysError.ALREADY_EXISTS],
  ["LOOKUP_PREFIX_ALREADY_EXISTS", BatchCreateImportedApiKeysError.ALREADY_EXISTS],
  ["REQUEST_ID_REUSED", BatchCreateImportedApiKeysError.ALREADY_EXISTS],
]);

export function batchCreateImportedApiKeys({
  keys,
}: ApiContext): Handler<typeof ImportedApiKeysService.method.batchCreateImportedApiKeys> {
  const parse = (request: CreateImportedApiKeyRequest) =>
    parseValid(CreateImportedApiKeyRequestSchema, request, () => parseNewImport(keys, importInput(request)));
  const importValid = async (requests: readonly CreateImportedApiKeyRequest[], principal: Principal) => {
    const items = await mapInSlices(requests, (request) => attempt(() => parse(request)));
    const createdBy = callerName(principal);
    requireFit(items, (item) => (isValid(item) ? createdSize(item, createdBy) : errorSize(item.message)));
    const imported = (await importKeys(keys, principal, items.filter(isValid))).values();
    return items.map((item): Outcome => (isValid(item) ? (imported.next().value ?? internal()) : item));
  };
  // The items are parsed when the call is executed, because they may take many ticks of the event loop.
  return ({ requests }) =>
    async (principal, call) => {
      const outcomes = await importValid(requests, principal);
      logKeys(
        call.log,
        outcomes.flatMap((outcome) => (outcome instanceof KeyholdError ? [] : [outcome.keyId])),
      );
      const now = keys.clock.now();
      const failures = outcomes.filter((outcome) => outcome instanceof KeyholdError);
      const response = {
        results: outcomes.map((outcome, index) => toResult(outcome, index, now, requests[index]?.rawKey ?? "")),
        successCount: outcomes.length - failures.length,
        failureCount: failures.length,
      };
      if (failures.length < outcomes.length) return response;
      const results = response.results.slice(0, countFitting(response.results, failureSize, call.maxDetailBytes));
      const desc = BatchCreateImportedApiKeysResponseSchema;
      throw toConnectError(allFailed(failures, results.length), [
        { desc, value: create(desc, { ...response, results }) },
      ]);
    };
}

/** Returns an upper bound of the bytes of the key that an item creates. */
function createdSize(input: ParsedImport, createdBy: string): number {
  return responseSize({ ...input, createdBy, warnings: rawKeyWarnings(input.rawKey) });
}

function isValid(item: ParsedImport | KeyholdError): item is ParsedImport {
  return !(item instanceof KeyholdError);
}

function toResult(outcome: Outcome, index: number, now: number, rawKey: string): Result {
  if (!(outcome instanceof KeyholdError))
    return { index, importedApiKey: importedApiKey(outcome, now), warnings: [...rawKeyWarnings(rawKey)] };
  return {
    index,
    errorCode: ITEM_ERRORS.get(outcome.code) ?? BatchCreateImportedApiKeysError.INTERNAL,
    errorMessage: outcome.message,
  };
}

/** Returns an upper bound of the bytes of a failed item in a response: its text, and at most 16 for the rest. */
function failureSize({ errorMessage = "" }: Result): number {
  return 16 + Buffer.byteLength(errorMessage);
}

/** Returns the error of the items if they agree in its status, otherwise INVALID_ARGUMENT. */
function allFailed(failures: readonly KeyholdError[], described: number): KeyholdError {
  const [code, ...others] = new Set(failures.map((failure) => failure.code));
  const isCommon = code !== undefined && others.every((other) => CODES[other] === CODES[code]);
  const which = described < failures.length ? `the first ${described}` : "each";
  const message = `none of the ${failures.length} keys was imported; see \`details\` for the errors of ${which}`;
  return new KeyholdError(isCommon ? code : "INVALID_ARGUMENT", message);
}

function internal(): KeyholdError {
  return new KeyholdError("INTERNAL", "internal error");
}
