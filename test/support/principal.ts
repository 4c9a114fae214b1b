import { localOperator } from "../../src/domain/principal.ts";

/** A principal that may do everything. */
export const operator = localOperator("test", "test-call");
