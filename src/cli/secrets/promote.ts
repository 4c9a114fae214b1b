import { stat } from "node:fs/promises";
import { invalidArgument } from "../../domain/errors.ts";
import { listNodes } from "../../postgres/nodes.ts";
import type { Resources } from "../../server/resources.ts";
import { changeRootSecretFile } from "../../server/root-secrets/file.ts";
import { rootSecretId } from "../../server/root-secrets/rings.ts";
import { requireActiveKey } from "../../signing/signing.ts";
import { withResources } from "../command.ts";
import { type OutputOptions, writeJson } from "../output.ts";
import { requireSecretFile, rewrapped, rewrapUnderCurrent } from "./file.ts";

/** Makes a staged root secret the current one, and wraps the signing keys under it. Idempotent. */
export async function promoteSecret(id: string, { json = false }: OutputOptions): Promise<void> {
  const wasCurrent = await withResources((resources) => promote(resources, id));
  const count = await rewrapUnderCurrent();
  if (json) return writeJson({ id, state: "current", signing_keys: count, restart_needed: !wasCurrent });
  if (!wasCurrent) console.log(`Root secret ${id} is now the current one. Restart every server to use it.`);
  console.log(rewrapped(count));
}

async function promote(resources: Resources, id: string): Promise<boolean> {
  const { rings, signing } = resources;
  if (rings.digest.find(id) === undefined)
    throw invalidArgument("id", `${id} is not a root secret of this configuration`);
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
async function requireRestarted({ database }: Resources, file: string): Promise<void> {
  const { mtime } = await stat(file);
  const behind = (await listNodes(database)).filter(
    ({ leaseAge, ttl, joinTime }) => leaseAge <= ttl && joinTime < mtime,
  );
  if (behind.length === 0) return;
  const names = behind.map(({ name }) => name).join(", ");
  throw new Error(`not restarted since the secret was staged: ${names}; restart them first`);
}
