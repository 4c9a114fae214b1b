import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { runKeyhold } from "../support/keyhold.ts";
import { useRootSecretFile } from "./root-secret-file.ts";

const file = useRootSecretFile();
const { environment, keyhold, expectNoSecret, stop, start } = file;

test("without a running server one step is enough", async () => {
  await stop();
  const before = await file.secrets();
  const ended = await keyhold("secrets", "rotate");
  expect(ended).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Signing keys wrapped with this root secret: 2."),
  });
  await expectNoSecret(ended);
  expect((await file.secrets()).slice(1)).toEqual(before);
  await writeFile(file.path, `${(await file.secrets())[0]}\n`);
  await start();
});

test("a file that does not match the database is not changed", async () => {
  const other = `${file.path}-other`;
  const text = `${randomBytes(32).toString("base64")}\n`;
  await writeFile(other, text);
  for (const args of [
    ["secrets", "rotate", "--stage"],
    ["signing-keys", "rotate"],
  ]) {
    const ended = await runKeyhold(args, { ...environment(), KEYHOLD_ROOT_SECRET_FILE: other });
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be unwrapped") });
  }
  expect(await readFile(other, "utf8")).toBe(text);
});

test("a root secret from the environment is not changed; the error lists the manual steps", async () => {
  const [secret = ""] = await file.secrets();
  const given = { KEYHOLD_DATABASE_URL: environment().KEYHOLD_DATABASE_URL, KEYHOLD_ROOT_SECRET: secret };
  const ended = await runKeyhold(["secrets", "rotate"], given);
  expect(ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("KEYHOLD_ROOT_SECRETS_RETIRED on every server"),
  });
  expect(ended.stderr).not.toContain(secret);
});
