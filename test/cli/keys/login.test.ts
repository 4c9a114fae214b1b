import { randomUUID } from "node:crypto";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { runKeyhold } from "../../support/keyhold.ts";
import { listenLocally } from "../../support/listen.ts";
import { useKeysCommand } from "./keys-command.ts";

const command = useKeysCommand();

test("login stores a context without the token, which is sent to its server only", async () => {
  const home = join(inject("testDir"), `home-${randomUUID()}`);
  const file = join(home, "keyhold/context.json");
  const tokenFile = `${home}.token`;
  const run = (...args: string[]) => runKeyhold([...args, "--json"], { XDG_CONFIG_HOME: home });
  const login = () => run("login", "--url", `${command.suite.server.url}/`, "--token-file", tokenFile);

  await writeFile(tokenFile, `kh_v1_${"0".repeat(94)}`);
  expect((await login()).code).toBe(4);
  await expect(stat(file)).rejects.toThrow("ENOENT");

  await writeFile(tokenFile, `${command.token}\n`);
  expect(await login()).toMatchObject({ code: 0, stderr: "" });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const context = { url: command.suite.server.url, token_file: tokenFile, ca_file: null };
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual(context);
  expect(await run("keys", "list", "--limit", "1")).toMatchObject({ code: 0, stderr: "" });

  const authorizations: unknown[] = [];
  const other = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    response.writeHead(404).end();
  });
  onTestFinished(() => void other.close());
  const port = await listenLocally(other);
  expect((await run("keys", "list", "--url", `http://127.0.0.1:${port}`)).code).not.toBe(0);
  expect(authorizations).toEqual([undefined]);

  await chmod(file, 0o644);
  const open = await run("keys", "list");
  expect(open).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("accessible to its owner only") });
});
