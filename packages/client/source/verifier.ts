export * from "../../../src/verifier/index.ts";
