import { KeyholdError } from "../../../src/domain/errors.ts";

/** Returns the violations of `INVALID_ARGUMENT`, as `field: description`; none if nothing is thrown. Any other error is thrown. */
export function violationsOf(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    if (!(error instanceof KeyholdError) || error.code !== "INVALID_ARGUMENT") throw error;
    return error.violations.map(({ field, description }) => `${field}: ${description}`);
  }
  return [];
}
