import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { beforeAll, expect, test } from "vitest";
import description from "../../packages/client/package.json" with { type: "json" };
import { useService } from "../support/conformance.ts";
import { INSTALL_LIMIT, installPackage, oldestNode, type Project, ROOT } from "./project.ts";

const suite = useService();

/** All that the package may bring. */
const DEPENDENCIES = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-web", "jose"];

let project: Project;
beforeAll(async () => {
  project = await installPackage("packages/client");
  await project.tsc("bare");
}, INSTALL_LIMIT);

test("only four dependencies are installed with it", () => {
  expect(Object.keys(description.dependencies).sort()).toEqual(DEPENDENCIES);
  expect([...project.installed].sort()).toEqual([...DEPENDENCIES, "@keyhold/client"].sort());
});

test("the package has only what its users need", () => {
  const others = project.files.filter(
    (file) => !/^(?:dist|gen\/(?:google\/rpc|keyhold))\/.*\.(?:js|d\.ts)$/.test(file),
  );
  expect(others.sort()).toEqual(["LICENSE", "README.md", "package.json"]);
  const folders = new Set(project.files.flatMap((file) => /^dist\/([\w-]+)\//.exec(file)?.[1] ?? []));
  expect([...folders].sort()).toEqual(["client", "domain", "key-page", "lib", "token", "verifier"]);
  expect(readFileSync(join(project.path, "node_modules/@keyhold/client/LICENSE"), "utf8")).toBe(
    readFileSync(join(ROOT, "LICENSE"), "utf8"),
  );
});

test("a program compiles without the types of Node, and runs on the oldest Node of this machine", async () => {
  const program = await oldestNode();
  const script = 'import { main } from "./bare/out/main.js"; console.log(JSON.stringify(await main(process.argv[1])));';
  const found = JSON.parse(await project.node(script, suite.server.url, program));
  expect(found).toEqual({
    hasKeyId: true,
    isIdempotent: true,
    online: "packed",
    offline: "packed",
    reason: "INVALID_ARGUMENT",
  });
});

test("its middleware works with Fastify and Express", { timeout: INSTALL_LIMIT }, async () => {
  const others = ["fastify", "express", "@types/express", "@types/node"];
  const withFrameworks = await installPackage("packages/client", others);
  await withFrameworks.tsc("frameworks");
  const found = JSON.parse(await withFrameworks.node('import "./frameworks/out/main.js";', suite.server.url));
  expect(found).toEqual({ offline: "packed", fastify: ["packed", 401], express: ["packed paid", 401] });
});

/** Minifies the script of a page with all that it imports. Returns its bytes, and those of its gzip. */
async function bundle(page: string): Promise<readonly number[]> {
  const build = await rolldown({ input: join(project.path, "bare/out", page), platform: "browser" });
  const { output } = await build.generate({ format: "esm", minify: true, codeSplitting: false });
  await build.close();
  return [Buffer.byteLength(output[0].code), gzipSync(output[0].code, { level: 9 }).length];
}

test("the sizes in the docs are true, within 10 % or 1 KB", async () => {
  const page = readFileSync(join(ROOT, "docs/clients.md"), "utf8");
  const stated = (row: string) =>
    new RegExp(`^\\| ${row}[^|]*\\| (\\d+) KB \\| (\\d+) KB \\|$`, "m").exec(page)?.slice(1).map(Number) ?? [];
  const sizes = {
    "The package": [project.unpackedSize, project.size],
    "Script of a page that calls Keyhold": await bundle("online-page.js"),
    "Script of a page that verifies JWTs offline": await bundle("offline-page.js"),
    "Script of a page that embeds the key page": await bundle("embedding-page.js"),
  };
  for (const [row, bytes] of Object.entries(sizes)) {
    const found = bytes.map((one) => Math.round(one / 1000));
    const isTrue = (kilobytes: number, index: number) =>
      Math.abs((stated(row)[index] ?? 0) - kilobytes) <= Math.max(1, kilobytes * 0.1);
    expect({ row, found, isTrue: found.every(isTrue) }).toEqual({ row, found, isTrue: true });
  }
});
