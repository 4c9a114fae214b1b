import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { servingBy } from "../support/keyhold.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { ROOT_SECRET } from "../support/server.ts";

function killGroup(group: number | undefined): void {
  try {
    if (group !== undefined) process.kill(-group, "SIGKILL");
  } catch {
    // It has already exited.
  }
}

// npm signals the shell of its script. A remaining shell would exit alone and orphan the server.
test("ending `npm start` ends the server", async () => {
  const database = await createTestDatabase();
  const env = {
    PATH: process.env.PATH,
    KEYHOLD_PORT: "0",
    KEYHOLD_METRICS_PORT: "off",
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
  };
  const cwd = resolve(import.meta.dirname, "../..");
  const npm = spawn("npm", ["start", "--silent"], { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  onTestFinished(() => killGroup(npm.pid));
  const server = await servingBy(npm);
  server.kill("SIGTERM");
  const { stdout } = await server.ended;
  expect(stdout).toContain('"msg":"stopped"');
  await database.drop();
});
