import { localOperator } from "../../src/domain/principal.ts";

/** A principal with all permissions. */
export const operator = localOperator("test", "test-call");
