export * from "../../../src/verifier/express.ts";
