import { stat } from "node:fs/promises";
import { rewrapTreeKey } from "../audit/tree/tree-key.ts";
import { invalidArgument } from "../domain/errors.ts";
import { rewrapHashSecrets } from "../hashing/rewrap.ts";
import { listNodes, type NodeStatus } from "../postgres/cluster/nodes.ts";
import { readConfig } from "../server/config/config.ts";
import type { Resources } from "../server/resources.ts";
import { changeRootSecretFile, newRootSecret, rootSecretFileOf } from "../server/root-secrets/file.ts";
import { isNeeded, type RootSecretUse, takeInventory } from "../server/root-secrets/inventory.ts";
import { rootSecretId } from "../server/root-secrets/rings.ts";
import { requireActiveKey, rewrapSigningKeys } from "../signing/signing.ts";
import { rewrapWebhookSecrets } from "../webhooks/secret.ts";
import { withResources } from "./command.ts";
import { note, type OutputOptions, tableText, write, writeJson, writeResult } from "./output.ts";

const HEADER = ["ID", "STATE", "ISSUED", "IMPORTED", "IN GRACE", "SIGNING KEYS", "HASH SECRETS", "WEBHOOKS", "VERDICT"];

export function listSecrets({ json = false }: OutputOptions): Promise<void> {
  return withResources(async ({ lists, rings, signing, hashing, auditTree, webhooks }) => {
    const stored = {
      signingKeys: await signing.store.list(),
      hashing: await hashing.rewrap.store.read(),
      webhooks: await webhooks.endpoints.secrets(),
      treeKey: (await auditTree.store.head()).key,
    };
    const uses = await takeInventory({ database: lists, rings, ...stored, now: signing.clock.now() });
    if (json) return writeJson(uses.map(toJson));
    await write(tableText(uses.map(columnsOf), HEADER));
    if (uses.some(({ state }) => state === "retired")) note(MACAROONS);
  });
}

/** Macaroons are not stored, so they cannot be counted. */
const MACAROONS =
  "Macaroons and page tokens are not counted: remove a retired root secret only after the longest-lived macaroon has expired.";

function columnsOf(use: RootSecretUse): string[] {
  const { needed: _, ...cells } = toJson(use);
  return [...Object.values(cells).map(String), verdict(use)];
}

function toJson(use: RootSecretUse) {
  const { id, state, issued, imported, inGrace, signingKeys, hashSecrets, webhookSecrets } = use;
  const wrapped = { signing_keys: signingKeys, hash_secrets: hashSecrets, webhook_secrets: webhookSecrets };
  const counts = { issued, imported, in_grace: inGrace, ...wrapped };
  return { id, state, ...counts, needed: isNeeded(use) };
}

function verdict(use: RootSecretUse): string {
  if (use.state === "current") return "in use";
  if (use.state === "staged") return "keep: not used yet; run `keyhold secrets promote` to make it current";
  if (use.state === "missing")
    return "missing: these keys are rejected until it is configured as a retired root secret";
  return isNeeded(use) ? "keep: stored data still depends on it" : "can be removed";
}

type RotateSecretOptions = OutputOptions & { readonly stage?: boolean };

/** Adds a new root secret as the current one, or with `stage` as accepted only. Rejects if a running server would not have it. */
export async function rotateSecret({ stage = false, json }: RotateSecretOptions): Promise<void> {
  const file = requireSecretFile();
  const secret = newRootSecret();
  await withResources(async (resources) => {
    await requireActiveKey(resources.signing);
    if (!stage) await requireNoServer(resources);
    await changeRootSecretFile(file, (lines) => (stage ? [...lines, secret] : [secret, ...lines]));
  });
  const id = rootSecretId(secret);
  const counts = stage ? NONE_WRAPPED : await rewrapUnderCurrent();
  const result = { id, state: stage ? "staged" : "current", file, ...counts };
  const rotated = `Root secret ${id} is now current in ${file}. Back up the file. ${rewrapped(counts)}`;
  await writeResult({ json }, result, stage ? staged(id, file) : rotated);
}

/** A running server has read the old file, and would reject credentials created under the new root secret. */
async function requireNoServer(resources: Resources): Promise<void> {
  const live = await listLive(resources);
  if (live.length === 0) return;
  throw new Error(`servers are running (${namesOf(live)}): stop them first, or use \`keyhold secrets rotate --stage\``);
}

function staged(id: string, file: string): string {
  return [
    `Root secret ${id} is staged in ${file}: it is accepted but not used yet. Back up the file.`,
    "1. Copy the file to every server, and restart every server.",
    `2. Run \`keyhold secrets promote ${id}\`.`,
    "3. Copy the file to every server again, and restart every server to use the new root secret.",
  ].join("\n");
}

/** Makes a staged root secret the current one, and wraps signing keys and hash secrets under it. Idempotent. */
export async function promoteSecret(id: string, options: OutputOptions): Promise<void> {
  const wasCurrent = await withResources((resources) => promote(resources, id));
  const counts = await rewrapUnderCurrent();
  const result = { id, state: "current", ...counts, restart_needed: !wasCurrent };
  const change = `Root secret ${id} is now current. Restart every server to use it.
`;
  await writeResult(options, result, `${wasCurrent ? "" : change}${rewrapped(counts)}`);
}

async function promote(resources: Resources, id: string): Promise<boolean> {
  const { rings, signing } = resources;
  if (rings.digest.find(id) === undefined)
    throw invalidArgument("id", "no root secret with this id is configured; run `keyhold secrets list`");
  await requireActiveKey(signing);
  if (rings.digest.current.id === id) return true;
  const file = requireSecretFile();
  await requireRestarted(resources, file);
  await changeRootSecretFile(file, (lines) =>
    [...lines].sort((a, b) => Number(rootSecretId(b) === id) - Number(rootSecretId(a) === id)),
  );
  return false;
}

/** Rejects if a server joined before the file changed, and so has not read it. A server that has rejoined since is not detected. */
async function requireRestarted(resources: Resources, file: string): Promise<void> {
  const { mtime } = await stat(file);
  const behind = (await listLive(resources)).filter(({ joinTime }) => joinTime < mtime);
  if (behind.length === 0) return;
  throw new Error(`servers not restarted since the secret was staged: ${namesOf(behind)}; restart them first`);
}

async function listLive({ database }: Resources): Promise<NodeStatus[]> {
  return (await listNodes(database)).filter(({ leaseAge, ttl }) => leaseAge <= ttl);
}

function namesOf(nodes: readonly NodeStatus[]): string {
  return nodes.map(({ name }) => name).join(", ");
}

const STEPS = `comes from the environment, which a command cannot change. Either move it to a file and set KEYHOLD_ROOT_SECRET_FILE, or rotate manually: 1. generate a new root secret (openssl rand -base64 32), add it to KEYHOLD_ROOT_SECRETS_RETIRED on every server, and restart the servers; 2. set the new root secret as KEYHOLD_ROOT_SECRET, add the old root secret to KEYHOLD_ROOT_SECRETS_RETIRED, and restart the servers; 3. run \`keyhold secrets promote <id>\` with the id from \`keyhold secrets list\`, to wrap the signing keys with the new root secret`;

/** Returns the path of the file with the root secrets. Throws `INVALID_ARGUMENT` with instructions if they come from the environment. */
function requireSecretFile(): string {
  const file = rootSecretFileOf(readConfig());
  if (file === null) throw invalidArgument("KEYHOLD_ROOT_SECRET", STEPS);
  return file;
}

/** How many signing keys, HMAC keys with texts around raw keys, and webhook endpoints had secrets that were wrapped. */
const NONE_WRAPPED = { signing_keys: 0, hash_secrets: 0, webhook_secrets: 0 };

/** Wraps everything under the current root secret, which all servers must know. */
function rewrapUnderCurrent(): Promise<typeof NONE_WRAPPED> {
  return withResources(async ({ signing, hashing, auditTree, webhooks, rings, keys: { random } }) => {
    const signing_keys = (await rewrapSigningKeys(signing)) + (await rewrapTreeKey(auditTree));
    const hash_secrets = await rewrapHashSecrets(hashing.rewrap);
    const context = { ring: rings.webhookSecretWrap, random };
    return { signing_keys, hash_secrets, webhook_secrets: await rewrapWebhookSecrets(webhooks.endpoints, context) };
  });
}

function rewrapped({ signing_keys, hash_secrets, webhook_secrets }: typeof NONE_WRAPPED): string {
  const counts = { "Hash secrets": hash_secrets, "Webhook secrets": webhook_secrets };
  const others = Object.entries(counts).map(([name, count]) => (count === 0 ? "" : `${name} wrapped: ${count}.\n`));
  return `Signing keys wrapped with this root secret: ${signing_keys}. ${others.join("")}Run \`keyhold secrets list\` to see what still depends on the retired root secrets.`;
}
