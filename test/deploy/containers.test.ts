import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Json } from "../support/rest.ts";
import { compose, dockerfile, read, root } from "./files.ts";

const services: Json[] = Object.values(compose.services);

test("the files of the image exist, and the build context contains no others", () => {
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, sources = ""]) =>
    sources.split(" "),
  );
  const allowed = read("deploy/docker/Dockerfile.dockerignore").match(/(?<=^!).*$/gm);
  expect(copied.length).toBeGreaterThan(5);
  expect(copied.filter((source) => !existsSync(join(root, source)))).toEqual([]);
  expect([...new Set(copied)].sort()).toEqual(allowed?.sort());
});

test("the image and the npm package have each page that the OpenAPI document links to", () => {
  const links = read("docs/openapi.json").match(/(?<=\]\()docs\/[\w-]+\.md/g);
  const pages = [...new Set(links)].sort();
  expect(pages.length).toBeGreaterThan(3);
  const { files }: { files: string[] } = JSON.parse(read("package.json"));
  const pagesIn = (paths: readonly string[]) => paths.filter((path) => /^docs\/.*\.md$/.test(path)).sort();
  expect(pagesIn(dockerfile.split(/\s/))).toEqual(pages);
  expect(pagesIn(files)).toEqual(pages);
});

test("no container has unnecessary privileges", () => {
  for (const service of services) {
    expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
    expect(service).not.toHaveProperty("privileged");
  }
  // Keyhold takes 10 s to stop.
  const servers = services.filter(({ image }) => image === "keyhold");
  expect(servers).toHaveLength(4);
  for (const { stop_grace_period } of servers)
    expect(Number.parseInt(stop_grace_period, 10)).toBeGreaterThanOrEqual(15);
});

test("the files and secrets mounted by compose exist", () => {
  const folder = "deploy/compose";
  const mounted = services.flatMap(({ volumes = [] }) => volumes.map((volume: string) => volume.split(":")[0] ?? ""));
  const paths = mounted.filter((path) => path.startsWith("."));
  expect(paths.length).toBeGreaterThan(6);
  expect(paths.filter((path) => !existsSync(join(root, folder, path)))).toEqual([]);
  const made = read(`${folder}/secrets.sh`);
  const secrets: [string, Json][] = Object.entries(compose.secrets);
  for (const [name, { file }] of secrets) {
    expect(file).toBe(`secrets/${name}`);
    expect(made).toContain(name);
  }
  const wanted = new Set(services.flatMap(({ secrets: names = [] }) => names));
  expect([...wanted].sort()).toEqual(secrets.map(([name]) => name).sort());
  const readFrom = [...JSON.stringify(compose).matchAll(/\/run\/secrets\/([\w.]+)/g)].map(([, name]) => name);
  expect(readFrom.filter((name) => !wanted.has(name))).toEqual([]);
});
