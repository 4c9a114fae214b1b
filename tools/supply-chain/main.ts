import { readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { audit } from "./audit.ts";
import { lockfileViolations } from "./lockfile.ts";
import { writeSbom } from "./sbom.ts";

/** `npm run check:packages`: checks the locked packages, asks for advisories, and writes the bill of materials. */
const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => JSON.parse(readFileSync(join(root, file), "utf8"));
const say = (line: string) => void process.stdout.write(`${line}\n`);

const locked = lockfileViolations(read("package-lock.json"), read("package.json").allowScripts);
for (const violation of locked) say(`package-lock.json: ${violation}`);
if (locked.length === 0)
  say("package-lock.json: every package has its SHA-512, none is deprecated, no unknown install script");

const audited = await audit(root);
if (audited.kind === "clean") say("npm audit: no known vulnerability");
if (audited.kind === "unanswered") say(`npm audit: NOT CHECKED, as the registry gave no advisories: ${audited.why}`);
if (audited.kind === "vulnerable") for (const finding of audited.findings) say(`npm audit: ${finding}`);

const file = join(root, "dist/keyhold.cdx.json");
const { specVersion, components } = await writeSbom(root, file);
say(`${relative(root, file)}: CycloneDX ${specVersion}, ${components.length} components`);

process.exitCode = locked.length > 0 || audited.kind === "vulnerable" ? 1 : 0;
