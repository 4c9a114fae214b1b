import { rename, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { newDataDir, runKeyhold, type Serving, serveForTest } from "../support/keyhold.ts";
import { linesOf } from "../support/log-lines.ts";
import { issue, paths, restClient, verify } from "../support/rest.ts";

const dataDir = newDataDir();
const environment = { KEYHOLD_DATA_DIR: dataDir.path };

afterAll(() => dataDir.remove());

/** Starts the server on the folder of this file and stops it with the test. */
function start(more: Record<string, string> = {}): Promise<Serving> {
  return serveForTest(dataDir, { ...environment, ...more });
}

test("an admin token is created with and without a running server, and stdout has only the secret", async () => {
  const create = ["admin", "token", "create", "--name", "ours", "--scope", "keyhold:keys.write", "keyhold:verify"];
  const alone = await runKeyhold(create, environment);
  expect(await dataDir.processes()).toEqual([]);
  const server = await start({ KEYHOLD_AUTH: "admin-token" });
  const beside = await runKeyhold(create, environment);
  expect([alone, beside].map(({ code }) => code)).toEqual([0, 0]);
  for (const { stdout, stderr } of [alone, beside]) {
    expect(stdout).toMatch(/^kh_v1_[0-9A-Za-z]+\n$/);
    expect(stderr).not.toContain(stdout.trim());
    const rest = restClient(server, { authorization: `Bearer ${stdout.trim()}` });
    const { secret } = await issue(rest);
    expect(await verify(rest, secret)).toMatchObject({ is_valid: true });
    expect((await rest("GET", paths.issued)).status).toBe(403);
  }
  expect((await restClient(server)("GET", paths.issued)).status).toBe(401);
  const keyId = /^key_id +(\S+)$/m.exec(beside.stderr)?.[1];
  expect(await runKeyhold(["signing-keys", "rotate"], environment)).toMatchObject({ code: 0 });
  server.kill("SIGTERM");
  const written = linesOf((await server.ended).stdout).filter(({ from, level }) => from === "postgres" && level === 30);
  const events = written.map(({ msg }) => JSON.parse(msg.replace("LOG:  keyhold: ", "")));
  const scopes = ["keyhold:keys.write", "keyhold:verify"];
  const by = { uid: process.getuid?.(), host: hostname() };
  expect(events).toEqual([
    { event: "admin token created", key_id: keyId, scopes, ...by },
    { event: "signing key rotated", kid: expect.any(String), algorithm: "EdDSA", ...by },
  ]);
});

test("a server refuses to start with a missing or wrong root secret, and starts with the right one", async () => {
  const first = await start();
  const { secret } = await issue(restClient(first));
  first.kill("SIGTERM");
  await first.ended;
  const file = join(dataDir.path, "root-secret");
  await rename(file, `${file}.kept`);
  const missing = await runKeyhold(["serve"], { ...environment, KEYHOLD_PORT: "0" });
  expect(missing).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("root-secret: is missing") });
  await writeFile(file, "another-root-secret-0123456789-abcdefghijklm\n", { mode: 0o600 });
  const other = await runKeyhold(["serve"], { ...environment, KEYHOLD_PORT: "0" });
  expect(other).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/root secret/) });
  await rename(`${file}.kept`, file);
  expect(await verify(restClient(await start()), secret)).toMatchObject({ is_valid: true });
});
