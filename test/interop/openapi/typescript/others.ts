import { randomUUID } from "node:crypto";
import { FieldViolationReason } from "./generated/schema.ts";
import { answered, keyhold, reasonOf, refused, type Schemas, stranger } from "./keyhold.ts";
import type { Step } from "./tap.ts";

export async function errors(ok: Step): Promise<void> {
  const nobody = { name: "typescript", actor_id: "" };
  const invalid = await refused(keyhold.POST("/v2alpha1/admin/issuedApiKeys", { body: nobody }));
  const [violation] = invalid.details.flatMap(({ field_violations = [] }) => field_violations);
  const isMissing = violation?.field === "actor_id" && violation.reason === FieldViolationReason.FIELD_REQUIRED;
  const isNamed = reasonOf(invalid) === "INVALID_ARGUMENT" && isMissing;
  ok("an invalid field is named", isNamed, invalid);

  const known = { raw_key: `legacy-3-${randomUUID()}`, name: "typescript", actor_id: "typescript" };
  await answered(keyhold.POST("/v2alpha1/admin/importedApiKeys", { body: known }));
  const body = { requests: [known] };
  const none = await refused(keyhold.POST("/v2alpha1/admin/importedApiKeys:batchCreate", { body }));
  const codes = none.details.flatMap(({ results = [] }) => results.map(({ error_code }) => error_code));
  const isTold = none.code === 409 && codes.join() === "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS";
  ok("a batch without a success has its results in the error", isTold, none);

  const rejected = await refused(stranger.GET("/v2alpha1/admin/issuedApiKeys"));
  const isUnknown = rejected.code === 401 && reasonOf(rejected) === "CALLER_UNAUTHENTICATED";
  ok("without a valid token", isUnknown, rejected);
}

export async function healthAndKeys(ok: Step): Promise<void> {
  const { data: alive } = await keyhold.GET("/health/alive");
  ok("alive", alive?.status === "ok", alive);
  const { data: ready } = await keyhold.GET("/health/ready");
  ok("ready", ready?.status === "ok" && ready.checks.database === "ok", ready);
  const jwks = await answered(keyhold.GET("/v2alpha1/derivedKeys/jwks.json"));
  ok("public keys", jwks.keys.length > 0 && jwks.keys.every(({ kid }) => kid !== ""), jwks);
}

/** Types only, so that nothing rejects a response; `tsc` checks that they admit unknown values. */
export function laterReleases(ok: Step): void {
  const verdict: Schemas["VerifyApiKeyResponse"] = {
    is_valid: false,
    scopes: [],
    metadata: {},
    missing_scopes: [],
    limits: [],
    error_code: "VERIFICATION_ERROR_LATER",
    status: "KEY_STATUS_LATER",
    credential_type: "CREDENTIAL_TYPE_LATER",
  };
  ok("unknown values of a response are admitted", verdict.error_code === "VERIFICATION_ERROR_LATER", verdict);
  const details = [
    { "@type": "type.googleapis.com/google.rpc.Help" },
    { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "LATER", domain: "keyhold", metadata: {} },
  ];
  const error: Schemas["ErrorStatus"] = { code: 400, message: "", status: "LATER", details };
  ok("and of an error", reasonOf(error) === "LATER", error);
}
