import { beforeAll, expect, onTestFinished, test } from "vitest";
import description from "../../package.json" with { type: "json" };
import { useService } from "../support/conformance.ts";
import { runKeyhold, serve } from "../support/keyhold.ts";
import { restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { installPackage, type Project } from "./project.ts";

const suite = useService();

let project: Project;
beforeAll(async () => {
  project = await installPackage();
});

test("the package has all required files, and no source, test or secret", () => {
  const unwanted = project.files.filter(
    (file) => !/^(?:dist|gen|proto)\/|^src\/postgres\/migrations\/\d+_\w+\.sql$/.test(file),
  );
  const expected = ["LICENSE", "README.md", "package.json", "src/cli/keyhold.js"];
  expect(unwanted.filter((file) => file !== "docs/openapi.json").sort()).toEqual(expected);
  expect(project.files.filter((file) => /\.sql$/.test(file)).length).toBeGreaterThan(3);
});

test("a program compiles against its types and runs with its client, verifiers and middleware", async () => {
  await project.tsc();
  const found = JSON.parse(await project.node("out/main.js", { KEYHOLD_URL: suite.server.url }));
  expect(found).toEqual({
    hasKeyId: true,
    offline: "packed",
    fastify: ["packed", 401],
    express: ["packed paid", 401],
    reason: "INVALID_ARGUMENT",
  });
});

test("its command runs", async () => {
  const { stdout, stderr } = await runKeyhold(["version"], {}, { main: project.bin("keyhold") });
  expect({ stdout, stderr }).toEqual({ stdout: `${description.version}\n`, stderr: "" });
});

test("its server serves, in several processes", async () => {
  const environment = {
    KEYHOLD_DATABASE_URL: suite.server.databaseUrl,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_WORKERS: "2",
  };
  const server = await serve(environment, project.bin("keyhold"));
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await server.ended;
  });
  expect(await restClient(server)("GET", "/health/ready")).toMatchObject({ status: 200 });
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0 });
});
