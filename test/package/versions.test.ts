import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./project.ts";

const read = (file: string) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));
const [server, client, lock] = ["package.json", "packages/client/package.json", "package-lock.json"].map(read);

test("both packages and the lockfile have one version", () => {
  expect(client.version).toBe(server.version);
  const locked = [lock, lock.packages[""], lock.packages["packages/client"]].map(({ version }) => version);
  expect(locked).toEqual([server.version, server.version, server.version]);
});

test("the client is tested with the server's versions of its dependencies, and accepts later ones", () => {
  for (const [name, range] of Object.entries<string>(client.dependencies))
    expect([name, range]).toEqual([name, `^${server.dependencies[name].replace("^", "")}`]);
});

test("both packages are published with what registries show", () => {
  for (const { description, license, keywords, repository, private: isPrivate } of [server, client]) {
    expect({ license, type: repository?.type, isPrivate }).toEqual({ license: "Apache-2.0", type: "git" });
    expect(description).toMatch(/API-key service/);
    expect(keywords).toContain("api-key");
  }
  expect(client).toMatchObject({ sideEffects: false, engines: { node: ">=20" } });
  expect(client.repository.directory).toBe("packages/client");
});
