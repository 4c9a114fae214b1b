import { invalidArgument, type KeyholdError } from "../domain/errors.ts";
import { suggestion } from "../lib/nearest-name.ts";
import { redactName } from "../lib/redact-name.ts";

/** The order of a list, by one field. */
export interface Order<F extends string> {
  readonly field: F;
  readonly isDescending: boolean;
}

/**
 * Parses `order_by` (AIP-132) with one of these fields, in snake_case or lowerCamelCase; empty means `byDefault`. Throws `INVALID_ARGUMENT`.
 *
 * @example parseOrderBy("expire_time desc", ["name", "expire_time"], byName) // { field: "expire_time", isDescending: true }
 */
export function parseOrderBy<F extends string>(text: string, fields: readonly F[], byDefault: Order<F>): Order<F> {
  const [name = "", direction, ...rest] = text.trim().split(/ +/);
  if (name === "") return byDefault;
  const allowed = `${fields.join(", ")}; to reverse the order, add "desc" after the field`;
  if (text.includes(",")) throw invalidOrder(`only one field is allowed; use one of ${allowed}`);
  const wanted = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const field = fields.find((candidate) => candidate === wanted);
  if (field === undefined) {
    const quoted = redactName(name, fields);
    throw invalidOrder(`unknown field "${quoted}"; allowed: ${allowed}${suggestion(name, fields)}`);
  }
  if (rest.length > 0 || (direction ?? "desc") !== "desc") {
    throw invalidOrder(`unexpected text after ${field}; allowed: "desc"`);
  }
  return { field, isDescending: direction !== undefined };
}

function invalidOrder(description: string): KeyholdError {
  return invalidArgument("order_by", description);
}
