import { expect, test } from "vitest";
import { explore } from "../../docs/consistency/explore.ts";
import { createMachine } from "../../docs/consistency/model.ts";
import { missingStep, SMALL } from "../../docs/consistency/variants.ts";

const isSound = SMALL.filter(({ shows }) => shows === null);
const lacks = SMALL.filter(({ shows }) => shows !== null);

test("the protocol returns no wrong verdict and reaches each goal", () => {
  const results = isSound.map(({ protocol, world }) => explore(createMachine(protocol, world)));
  expect(results.map(({ counterexample }) => counterexample)).toEqual(isSound.map(() => null));
  const missed = results.map((one) => new Set(one.missed)).reduce((all, one) => all.intersection(one));
  expect([...missed]).toEqual([]);
}, 180_000);

test.for(lacks)("the model checker finds the counterexample of $name", (variant) => {
  const { counterexample } = explore(createMachine(variant.protocol, variant.world));
  expect(missingStep(variant, counterexample), counterexample?.join("\n")).toBeNull();
});
