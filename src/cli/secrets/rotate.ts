import { listNodes } from "../../postgres/nodes.ts";
import type { Resources } from "../../server/resources.ts";
import { changeRootSecretFile, newRootSecret } from "../../server/root-secrets/file.ts";
import { rootSecretId } from "../../server/root-secrets/rings.ts";
import { requireActiveKey } from "../../signing/signing.ts";
import { withResources } from "../command.ts";
import { type OutputOptions, writeJson } from "../output.ts";
import { requireSecretFile, rewrapped, rewrapUnderCurrent } from "./file.ts";

export interface RotateSecretOptions extends OutputOptions {
  readonly stage?: boolean;
}

/** Adds a new root secret as the current one, or with `stage` as accepted only. Rejects if a running server would not have it. */
export async function rotateSecret({ stage = false, json = false }: RotateSecretOptions): Promise<void> {
  const file = requireSecretFile();
  const secret = newRootSecret();
  await withResources(async (resources) => {
    await requireActiveKey(resources.signing);
    if (!stage) await requireNoServer(resources);
    await changeRootSecretFile(file, (lines) => (stage ? [...lines, secret] : [secret, ...lines]));
  });
  const id = rootSecretId(secret);
  const count = stage ? 0 : await rewrapUnderCurrent();
  if (json) await writeJson({ id, state: stage ? "staged" : "current", file, signing_keys: count });
  else console.log(stage ? staged(id, file) : rotated(id, file, count));
}

function rotated(id: string, file: string, count: number): string {
  return `Root secret ${id} is now the current one in ${file}. Back up the file.\n${rewrapped(count)}`;
}

/** A running server has read the old file, and would reject credentials created under the new root secret. */
async function requireNoServer({ database }: Resources): Promise<void> {
  const live = (await listNodes(database)).filter(({ leaseAge, ttl }) => leaseAge <= ttl);
  if (live.length === 0) return;
  throw new Error(
    `servers are running (${live.map(({ name }) => name).join(", ")}): stop them first, or use \`keyhold secrets rotate --stage\``,
  );
}

function staged(id: string, file: string): string {
  return [
    `Root secret ${id} is staged in ${file}: accepted, not yet used. Back up the file.`,
    "1. Copy the file to every server, and restart each.",
    `2. Run \`keyhold secrets promote ${id}\`.`,
    "3. Copy the file to every server again, and restart each to use the new one.",
  ].join("\n");
}
