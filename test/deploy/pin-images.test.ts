import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, onTestFinished, test } from "vitest";
import { root } from "./files.ts";

const IMAGES = ["grafana/grafana", "nginx", "node", "postgres", "prom/prometheus"];

/** A copy of deploy/, and a function that runs its script with the given `docker` program. */
async function copy() {
  const dir = await mkdtemp(join(inject("testDir"), "pin-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  await cp(join(root, "deploy"), join(dir, "deploy"), { recursive: true });
  await mkdir(join(dir, "bin"));
  const pin = async (docker: string) => {
    await writeFile(join(dir, "bin/docker"), `#!/bin/sh\n${docker}\n`);
    await chmod(join(dir, "bin/docker"), 0o755);
    const env = { PATH: `${join(dir, "bin")}:${process.env.PATH}` };
    return promisify(execFile)(join(dir, "deploy/pin-images.sh"), { env, cwd: "/" });
  };
  const texts = () =>
    Promise.all(
      ["docker/Dockerfile", "compose/compose.yaml"].map((file) => readFile(join(dir, "deploy", file), "utf8")),
    );
  return { pin, texts };
}

/** Returns the used images without our own. */
function named(texts: readonly string[]): string[] {
  const references = texts.join("\n").matchAll(/^(?:ARG NODE_IMAGE=|FROM (?!\$)| +image: )(\S+)/gm);
  return [...new Set([...references].map(([, image = ""]) => image))].filter((image) => image !== "keyhold").sort();
}

const answer = (digit: string) => `test "$1 $2 $3" = "buildx imagetools inspect" && echo sha256:${digit.repeat(64)}`;

test("the script pins every image by the digest of its tag, and updates it", async () => {
  const { pin, texts } = await copy();
  const before = await texts();
  expect(named(before).map((image) => image.split(":")[0])).toEqual(IMAGES);
  for (const digit of ["a", "b"]) {
    await pin(answer(digit));
    const pinned = named(await texts());
    expect(pinned).toEqual(named(before).map((image) => `${image.split("@")[0]}@sha256:${digit.repeat(64)}`));
  }
  const without = (await texts()).map((text) => text.replaceAll(/@sha256:b{64}/g, ""));
  expect(without).toEqual(before.map((text) => text.replaceAll(/@sha256:[0-9a-f]{64}/g, "")));
});

test.each([
  ["a registry does not answer", 'case "$4" in postgres*) exit 1; esac; echo sha256:'.concat("a".repeat(64))],
  ["a result is not a digest", "echo latest"],
])("the script changes nothing when %s", async (_, docker) => {
  const { pin, texts } = await copy();
  const before = await texts();
  await expect(pin(docker)).rejects.toMatchObject({ code: 1 });
  expect(await texts()).toEqual(before);
});
