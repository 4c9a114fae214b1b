import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { getHeapSnapshot } from "node:v8";
import { verify } from "../../../src/verify/verify.ts";
import { HOUR, NOW, newFixture } from "../fixture.ts";

/*
 * A program of `no-credentials.test.ts`: verifies credentials of each type until they are cached in every form, prints them
 * one per line, drops all but the first, and writes a heap snapshot to the file named by its argument.
 */

const fixture = newFixture();

function credentials(): string[] {
  return Array.from({ length: 25 }, (_, i) => {
    const { keyId, credential } = fixture.issue();
    const raw = fixture.importRaw(
      `raw key ${i} ${Math.random().toString(36)}${Math.random().toString(36)} of another service`,
    );
    return [credential, raw.credential, fixture.jwt(keyId, NOW + HOUR), fixture.macaroon(raw.keyId, NOW + HOUR)];
  }).flat();
}

async function fillCache(): Promise<string> {
  const all = credentials();
  for (let round = 0; round < 3; round++) {
    for (const credential of all) {
      if (!(await verify(fixture.context, credential)).valid) throw new Error("not valid");
      await verify(fixture.context, `${credential.slice(0, 60)} is nobody's`);
    }
  }
  process.stdout.write(all.map((credential) => `${credential}\n`).join(""));
  return all[0] ?? "";
}

const held = await fillCache();
// The engine keeps the last input of a regular expression.
/^$/.test("");
await pipeline(getHeapSnapshot(), createWriteStream(process.argv[2] ?? ""));
process.stderr.write(`${fixture.cache.stats().credentials} ${fixture.cache.stats().hits} ${held.length}`);
