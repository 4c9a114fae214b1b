import fc from "fast-check";

/** Gives properties the seed of `KEYHOLD_TEST_SEED`; without it each run has another, which fast-check prints with a counterexample. */
const { KEYHOLD_TEST_SEED: seed } = process.env;
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) });
