import { readdir } from "node:fs/promises";
import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { table } from "../support/conformance.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { compareProtocols } from "../support/protocols/scenario.ts";
import { SCENARIOS } from "./protocols-scenarios.ts";

const suite = useProtocols();
const byMethod = Map.groupBy(SCENARIOS, ({ method }) => method);

describe.for(table([...byMethod]))("%s", ([, scenarios]) => {
  test.for(scenarios)("$title, the same over every protocol", (scenario) =>
    compareProtocols(suite.protocols, scenario),
  );
});

/** The services of the generated code, served or not. */
async function describedServices(): Promise<DescService[]> {
  const folder = new URL("../../gen/keyhold/v2alpha1/", import.meta.url);
  const files = (await readdir(folder)).filter((name) => name.endsWith("_pb.js"));
  const modules = await Promise.all(files.map((name) => import(new URL(name, folder).href)));
  const exported: { kind?: string }[] = modules.flatMap((module) => Object.values(module));
  return exported.filter((value): value is DescService => value.kind === "service");
}

test("every unary RPC of every service has a scenario", async () => {
  const services = await describedServices();
  expect(services.length).toBe(12);
  const methods = services.flatMap((service) => service.methods).concat(Health.method.check);
  expect(methods.length).toBeGreaterThan(18);
  const unary = methods.filter(({ methodKind }) => methodKind === "unary");
  expect(unary.filter((method) => !byMethod.has(method as DescMethodUnary)).map(String)).toEqual([]);
});
