import { invalidArgument } from "../../domain/errors.ts";
import { type Charge, LIMIT_NAME } from "../../domain/rate-limit.ts";
import { suggestion } from "../../lib/nearest-name.ts";
import { redactName } from "../../lib/redact-name.ts";

/** What a gateway requires of a credential: from its configuration, never from a header, which a client can send. */
export interface Requirements {
  readonly requiredScopes: readonly string[];
  readonly audience: string | undefined;
  /** What the request costs by limits of the key; 1 by others. */
  readonly charges: readonly Charge[];
}

const PARAMETERS = ["required_scopes", "audience", "charges"];

/** As in `VerifyApiKeyRequest`. */
const MAX_SCOPES = 32;
const NAME = /^[!-~]{1,255}$/;

/**
 * Reads `required_scopes` and `charges`, which may occur several times, and `audience`. An unknown parameter is an error: a misspelt requirement must not
 * be ignored. Throws `INVALID_ARGUMENT`.
 */
export function readRequirements(parameters: Iterable<readonly [name: string, value: string]>): Requirements {
  const scopes: string[] = [];
  const charges: Charge[] = [];
  let audience: string | undefined;
  for (const [name, value] of parameters) {
    if (name === "required_scopes") scopes.push(...readScopes(value));
    else if (name === "charges") charges.push(...readCharges(value));
    else if (name !== "audience") {
      const description = `is not a known parameter${suggestion(name, PARAMETERS)}`;
      throw invalidArgument(redactName(name, PARAMETERS), description, "UNKNOWN_FIELD");
    } else if (audience !== undefined) throw invalidArgument(name, "is set twice", "DUPLICATE_FIELD");
    else audience = readName(name, value);
  }
  const requiredScopes = [...new Set(scopes)];
  if (requiredScopes.length > MAX_SCOPES) {
    throw invalidArgument("required_scopes", `has more than ${MAX_SCOPES} scopes`, "TOO_MANY_ITEMS");
  }
  if (charges.length > MAX_CHARGES)
    throw invalidArgument("charges", `has more than ${MAX_CHARGES} items`, "TOO_MANY_ITEMS");
  return { requiredScopes, audience, charges };
}

/** As in `VerifyApiKeyRequest`. */
const MAX_CHARGES = 8;

const CHARGE = new RegExp(`^(${LIMIT_NAME})(?::(\\d{1,9}))?$`);

/** Reads names of limits, each with its cost after a colon, or with the cost 1. */
function readCharges(text: string): Charge[] {
  const items = text.split(/[ ,]+/).filter((item) => item !== "");
  if (items.length === 0) throw invalidArgument("charges", "is required", "FIELD_REQUIRED");
  return items.map((item) => {
    const [, name, cost = "1"] = CHARGE.exec(item) ?? [];
    if (name === undefined) throw invalidArgument("charges", "must be names of limits with costs, such as exports:5");
    return { name, cost: Number(cost) };
  });
}

/** A value without a scope is an error, such as of a template whose variable is not set, and does not mean that none is required. */
function readScopes(text: string): string[] {
  const scopes = text.split(/[ ,]+/).filter((scope) => scope !== "");
  if (scopes.length === 0) throw invalidArgument("required_scopes", "is required", "FIELD_REQUIRED");
  return scopes.map((scope) => readName("required_scopes", scope));
}

function readName(field: string, text: string): string {
  if (NAME.test(text)) return text;
  throw invalidArgument(field, "must be 1 to 255 visible ASCII characters", "INVALID_CHARACTER");
}
