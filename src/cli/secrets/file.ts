import { invalidArgument } from "../../domain/errors.ts";
import { readConfig } from "../../server/config/config.ts";
import { rootSecretFileOf } from "../../server/root-secrets/file.ts";
import { rewrapSigningKeys } from "../../signing/signing.ts";
import { withResources } from "../command.ts";

const STEPS = `comes from the environment, which a command cannot change. Either move it to a file and set KEYHOLD_ROOT_SECRET_FILE,
or rotate manually: 1. generate a new one (openssl rand -base64 32), add it to KEYHOLD_ROOT_SECRETS_RETIRED of every server, and restart
them; 2. set it as KEYHOLD_ROOT_SECRET, add the old one to KEYHOLD_ROOT_SECRETS_RETIRED, and restart them; 3. run \`keyhold secrets
promote <id>\` with the id from \`keyhold secrets list\`, to wrap the signing keys under it`;

/** Returns the path of the file with the root secrets. Throws `INVALID_ARGUMENT` with instructions if they come from the environment. */
export function requireSecretFile(): string {
  const file = rootSecretFileOf(readConfig());
  if (file === null) throw invalidArgument("KEYHOLD_ROOT_SECRET", STEPS);
  return file;
}

/** Wraps the signing keys under the current root secret, which all servers must know, and returns how many were wrapped. */
export function rewrapUnderCurrent(): Promise<number> {
  return withResources(({ signing }) => rewrapSigningKeys(signing));
}

export function rewrapped(count: number): string {
  return `Signing keys wrapped under it: ${count}.\nRun \`keyhold secrets list\` to see what still depends on the retired ones.`;
}
