import { execFile } from "node:child_process";
import { cp, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { hashSync } from "@node-rs/bcrypt";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import consoleDescription from "../../console/package.json" with { type: "json" };
import description from "../../package.json" with { type: "json" };
import { useService } from "../support/conformance.ts";
import { runKeyhold, serve } from "../support/keyhold.ts";
import { restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { INSTALL_LIMIT, installPackage, type Project, ROOT } from "./project.ts";

const suite = useService();

let project: Project;
let keyhold: string;
beforeAll(async () => {
  project = await installPackage(".");
  keyhold = join(project.path, "node_modules/.bin/keyhold");
}, INSTALL_LIMIT);

test("the package has all required files, and no source, test or secret", () => {
  const unwanted = project.files.filter(
    (file) =>
      !/^(?:dist|console\/dist|gen|proto|src\/transport\/services\/viewer)\/|^src\/postgres\/migrations\/\d+_\w+\.sql$/.test(
        file,
      ),
  );
  // The pages are those that docs/openapi.json links to.
  const docs = [
    "admin-authentication.md",
    "audit.md",
    "concepts.md",
    "introspection.md",
    "key-page.md",
    "limits.md",
    "openapi.json",
    "operating.md",
    "webhooks.md",
  ];
  const expected = [
    "LICENSE",
    "README.md",
    ...docs.map((file) => `docs/${file}`),
    "package.json",
    "src/cli/keyhold.js",
  ];
  expect(unwanted.sort()).toEqual(expected);
  expect(project.files.filter((file) => /\.sql$/.test(file)).length).toBeGreaterThan(3);
  const protos = [
    "keyhold/v2alpha1/api_keys",
    "google/api/annotations",
    "google/rpc/error_details",
    "buf/validate/validate",
  ];
  expect(project.files).toEqual(expect.arrayContaining(protos.map((file) => `proto/${file}.proto`)));
  expect(project.files).toContain("gen/keyhold.binpb");
  expect(project.files.filter((file) => file.startsWith("dist/verifier/"))).toEqual([]);
});

test("it has the built console with the licenses of its libraries, and installs none of them", () => {
  const ofConsole = project.files.filter((file) => file.startsWith("console/") && !file.includes("/assets/"));
  expect(ofConsole.sort()).toEqual(
    ["icon.svg", "index.html", "keys.html", "licenses.md"].map((file) => `console/dist/${file}`),
  );
  const libraries = Object.keys(consoleDescription.devDependencies).filter(
    (name) => !(name in description.dependencies),
  );
  expect(libraries).toEqual(expect.arrayContaining(["react", "@mantine/core", "vite"]));
  expect(project.installed.filter((name) => libraries.includes(name))).toEqual([]);
});

test("without development dependencies, as after npm ci --omit=dev, the installation of a clone builds no console", async () => {
  const script = join(project.path, "tools/console/build.ts");
  await cp(join(ROOT, "tools/console/build.ts"), script);
  const { stderr } = await promisify(execFile)(process.execPath, [script], { cwd: project.path });
  expect(stderr).toBe("the console is not built: the development dependencies are not installed\n");
});

test("its command runs", async () => {
  const { stdout, stderr } = await runKeyhold(["version"], {}, { main: keyhold });
  expect({ stdout, stderr }).toEqual({ stdout: `${description.version}\n`, stderr: "" });
});

/** Prints whether a hash of bcrypt is that of a raw key, as the compiled program computes it; or why it cannot be. */
const BCRYPT = `
  const program = (path) => import(new URL("node_modules/keyhold/dist/" + path, "file://" + process.cwd() + "/").href);
  const { createSlowHashes } = await program("hashing/slow/slow-hashes.js");
  const { parseRawKeyHash } = await program("hashing/input/raw-key-hash.js");
  const { rawKeyHashDigests } = await program("hashing/digest.js");
  const { deriveKeyRing } = await program("domain/server-keys.js");
  const { systemRandom } = await program("lib/random.js");
  const ring = deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "secret-digest");
  const slow = createSlowHashes({ ring, random: systemRandom });
  const hash = parseRawKeyHash({ phc: process.argv[1] });
  const timer = setInterval(() => {}, 1000);
  try {
    await slow.assertSupported(hash);
    const [digest] = rawKeyHashDigests(hash, ring);
    const secret = { version: 1, digest, expireTime: null, hash: { schemeId: 1, parameters: hash.parameters } };
    console.log(await slow.matches("raw key", { schemeId: 1, ...hash.scheme, hmacKey: null }, secret));
  } catch (error) {
    console.log(error.message);
  }
  await slow.close();
  clearInterval(timer);
`;

test("its threads compute slow hashes, and without the program of bcrypt the import says so", async () => {
  const hash = hashSync("raw key", 4);
  expect(await project.node(BCRYPT, hash)).toBe("true\n");
  const [program] = project.installed.filter((name) => name.startsWith("@node-rs/bcrypt-"));
  const folder = join(project.path, "node_modules", program ?? "");
  await rename(folder, `${folder}-moved`);
  onTestFinished(() => rename(`${folder}-moved`, folder));
  expect(await project.node(BCRYPT, hash)).toBe(
    "raw_key_hash.phc: this server cannot compute HASH_ALGORITHM_BCRYPT: install the npm package keyhold with its optional dependencies, " +
      "which include @node-rs/bcrypt for this platform\n",
  );
});

/** Starts the server of the package, which is ready and serves the console, and stops it at the end. */
async function check(environment: Record<string, string>): Promise<void> {
  const server = await serve(environment, keyhold);
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await server.ended;
  });
  expect(await restClient(server)("GET", "/health/ready")).toMatchObject({ status: 200 });
  const page = await (await fetch(new URL("/console", server.url))).text();
  const assets = [...page.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
  expect(assets.map((path) => path.replace(/^.*\./, "")).sort()).toEqual(expect.arrayContaining(["css", "js"]));
  for (const path of assets) expect(await fetch(new URL(path, server.url))).toMatchObject({ status: 200 });
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0 });
}

test("its server serves with the embedded database", () => check({ KEYHOLD_DATA_DIR: join(project.path, "data") }));

test("its server serves in several processes", () =>
  check({
    KEYHOLD_DATABASE_URL: suite.server.databaseUrl,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_WORKERS: "2",
  }));
