import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { runKeyhold } from "../support/keyhold.ts";
import { runAsSuperuser } from "../support/postgres.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { readPages } from "./blocks.ts";

const shown = readPages().flatMap(({ blocks }) => blocks.filter(({ role }) => role === "statements"));
const textsWith = (part: string) => shown.map(({ text }) => text).filter((text) => text.includes(part));

test("the statements for two roles are sufficient for a server that may not change the schema", async () => {
  const [setup, prune, erase] = ["CREATE ROLE", "audit_prune", "audit_erase"].flatMap(textsWith);
  const queries = shown.map(({ text }) => text).filter((text) => ![setup, prune, erase].includes(text));
  const [name, password] = [`keyhold_${randomBytes(6).toString("hex")}`, randomBytes(16).toString("hex")];
  const own = (text: string) => text.replaceAll("keyhold", name).replaceAll("…", password);
  const statements = own(setup ?? "")
    .trim()
    .split("\n");
  const url = new URL(await runAsSuperuser(statements));
  onTestFinished(async () => {
    await runAsSuperuser([`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${name}_server`, `DROP ROLE ${name}_owner`]);
  });
  const urlAs = (role: string) => Object.assign(new URL(url), { username: role, password, pathname: name }).href;
  const environment = { KEYHOLD_DATABASE_URL: urlAs(`${name}_server`), KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  const owner = { KEYHOLD_DATABASE_MIGRATE_URL: urlAs(`${name}_owner`) };
  expect(await runKeyhold(["migrate"], { ...environment, ...owner })).toMatchObject({ code: 0, stderr: "" });
  const { stdout } = await runKeyhold(["doctor", "--json"], environment);
  const rights = JSON.parse(stdout).findings.filter(({ check }: { check: string }) => check === "rights");
  expect(rights).toMatchObject([{ level: "ok" }]);
  const sql = postgres(environment.KEYHOLD_DATABASE_URL, { max: 1 });
  onTestFinished(() => sql.end());
  expect(queries).toHaveLength(2);
  for (const query of queries) expect(await sql.unsafe(query)).toEqual([]);
  await expect(sql.unsafe(prune ?? "")).rejects.toThrow("permission denied for function audit_prune");
  await expect(sql.unsafe(erase ?? "")).rejects.toThrow("permission denied for function audit_erase");
  const asOwner = postgres(owner.KEYHOLD_DATABASE_MIGRATE_URL, { max: 1 });
  onTestFinished(() => asOwner.end());
  expect(await asOwner.unsafe(prune ?? "")).toEqual([{ audit_prune: "0" }]);
  expect(await asOwner.unsafe(erase ?? "")).toEqual([{ audit_erase: "0" }]);
});
