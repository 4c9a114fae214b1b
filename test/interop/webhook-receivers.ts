import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { signatureHeaders } from "../../src/webhooks/sending/signature.ts";
import { freePort } from "../support/free-port.ts";
import { whileServing } from "./service-process.ts";
import type { Check } from "./tap.ts";

/** What uses the library of Svix instead, in each file of `examples/webhooks/`. */
const SVIX: Readonly<Record<string, readonly [standard: string, svix: string]>> = {
  "receiver.ts": ['from "standardwebhooks"', 'from "svix"'],
  "receiver.py": ["from standardwebhooks.webhooks", "from svix.webhooks"],
  "requirements.txt": ["standardwebhooks==1.1.0", "svix==2.9.1"],
  "main.go": ["github.com/standard-webhooks/standard-webhooks/libraries/go", "github.com/svix/svix-webhooks/go"],
};

const [OWN, NEXT, OTHER] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer];

/** Runs a script that starts a receiver in this folder, with both official libraries. */
export async function checkReceiver(script: string, folder: string): Promise<readonly Check[]> {
  // Within the repository, whose packages it imports.
  const copy = await mkdtemp(join(import.meta.dirname, ".blocks-"));
  try {
    await cp(folder, copy, { recursive: true, filter: (path) => !path.endsWith(".venv") });
    for (const [file, [standard, svix]] of Object.entries(SVIX)) {
      const text = await readFile(join(copy, file), "utf8");
      if (!text.includes(standard)) throw new Error(`${file} does not have ${standard}`);
      await writeFile(join(copy, file), text.replace(standard, svix));
    }
    const name = script.trim().split("\n").at(-1);
    return [
      ...(await checkMessages(`${name}, standardwebhooks`, script, folder)),
      ...(await checkMessages(`${name}, svix`, script.replace("go run", "go mod tidy\ngo run"), copy)),
    ];
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Starts a receiver of messages that are signed with the secret `OWN`. */
export async function checkMessages(name: string, script: string, cwd: string): Promise<readonly Check[]> {
  const port = String(await freePort());
  const env = { WEBHOOK_SECRET: `whsec_${OWN.toString("base64")}`, PORT: port };
  const url = `http://127.0.0.1:${port}/`;
  try {
    return await whileServing({ script, cwd, env, url }, () => sendMessages(name, url));
  } catch (error) {
    return [{ name: `${name}: runs`, holds: false, comment: String(error) }];
  }
}

async function sendMessages(name: string, url: string): Promise<readonly Check[]> {
  const checks: Check[] = [];
  const text = '{"type":"key.revoked","data":{"key_id":"0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"}}';
  const check = async (what: string, wanted: string, id: string, secrets: readonly Buffer[], age = 0, body = text) => {
    const headers = signatureHeaders({ id, secrets, body: text }, Date.now() - age);
    const response = await fetch(url, { method: "POST", headers, body });
    const found = `${response.status} ${await response.text()}`;
    checks.push({ name: `${name}: ${what}: ${wanted}`, holds: found.trim() === wanted, comment: `found ${found}` });
  };
  await check("a message", "200 processed", "msg_1", [OWN]);
  await check("the same message in a second attempt", "200 already processed", "msg_1", [OWN], 5_000);
  await check("another message", "200 processed", "msg_2", [OWN]);
  await check("a message while its secret is new", "200 processed", "msg_3", [OWN, NEXT]);
  await check("a message while its secret is old", "200 processed", "msg_4", [NEXT, OWN]);
  await check("another secret", "401", "msg_5", [OTHER]);
  await check("a tampered message", "401", "msg_6", [OWN], 0, text.replace("revoked", "enabled"));
  await check("a message of 10 minutes ago", "401", "msg_7", [OWN], 600_000);
  await check("a message from 10 minutes ahead", "401", "msg_8", [OWN], -600_000);
  return checks;
}
