import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { toConnectError } from "../../../src/api/errors.ts";
import { bearerOf } from "../../../src/auth/caller-credential.ts";
import { requireAnyScope, requireScope } from "../../../src/auth/guard.ts";
import { rateLimited } from "../../../src/auth/own-limits.ts";
import { ADMIN_SCOPES } from "../../../src/domain/admin-scopes.ts";
import { UNRESTRICTED } from "../../../src/domain/principal.ts";
import { OVERLOADED } from "../../../src/transport/pipeline/concurrency-limiter.ts";
import { toErrorBody } from "../../../src/transport/wire/error-body.ts";
import { HttpError } from "../../../src/transport/wire/http-error.ts";

const NOBODY = { subject: "", method: "oidc", scopes: [], restrictions: UNRESTRICTED } as const;

/** Errors of many operations, made by the code of the server; those that depend on the policy are `<reason>.<policy>`. */
const ERRORS: Readonly<Record<string, unknown>> = {
  CALLER_UNAUTHENTICATED: thrownBy(() => bearerOf(undefined)),
  ...Object.fromEntries(
    ADMIN_SCOPES.map((scope) => [nameOf("CALLER_NOT_PERMITTED", scope), thrownBy(() => requireScope(NOBODY, scope))]),
  ),
  [nameOf("CALLER_NOT_PERMITTED", "authenticated")]: thrownBy(() => requireAnyScope(NOBODY)),
  BODY_TOO_LARGE: new HttpError("BODY_TOO_LARGE"),
  MEDIA_TYPE_NOT_SUPPORTED: new HttpError("MEDIA_TYPE_NOT_SUPPORTED"),
  CONTENT_ENCODING_NOT_SUPPORTED: new HttpError("CONTENT_ENCODING_NOT_SUPPORTED"),
  RATE_LIMITED: rateLimited("public", "client_address", 1_000),
  INTERNAL: new Error("hidden from callers"),
  OVERLOADED,
};

/** The component `examples`. */
export const COMMON_EXAMPLES: JsonObject = Object.fromEntries(
  Object.entries(ERRORS).map(([name, error]) => [name, { value: toErrorBody(toConnectError(error)) as JsonValue }]),
);

/** Returns references to the common examples of these reasons. `policy` is that of the operation. */
export function commonExamples(reasons: readonly string[], policy: string | undefined): JsonObject {
  const found = reasons.flatMap((reason) => {
    const name = [reason, nameOf(reason, policy)].find((one) => one in ERRORS);
    return name === undefined ? [] : [[reason, { $ref: `#/components/examples/${name}` }]];
  });
  return Object.fromEntries(found);
}

function nameOf(reason: string, policy: string | undefined): string {
  return `${reason}.${policy?.replace(/^keyhold:/, "")}`;
}

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
