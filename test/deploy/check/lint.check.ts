import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { root } from "../files.ts";
import { installTools, runTool } from "./tools.ts";

beforeAll(installTools);

test("hadolint finds nothing in the Dockerfile", async () => {
  const file = join(root, "deploy/docker/Dockerfile");
  expect(await runTool("hadolint", [file])).toEqual({ status: 0, stdout: "", stderr: "" });
});

test("Compose reads its file", async () => {
  const folder = join(root, "deploy/compose");
  const { status, stdout, stderr } = await runTool("compose", [join(folder, "compose.yaml")], folder);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toContain("service_completed_successfully");
});
