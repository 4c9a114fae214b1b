import { invalidArgument } from "../../domain/errors.ts";
import { readConfig } from "../../server/config/config.ts";
import { rootSecretFileOf } from "../../server/root-secrets/file.ts";
import { rewrapSigningKeys } from "../../signing/signing.ts";
import { withResources } from "../command.ts";

const STEPS = `comes from the environment, which a command cannot change. Either put it into a file that KEYHOLD_ROOT_SECRET_FILE names,
or do it by hand: 1. make a new one (openssl rand -base64 32) and add it to KEYHOLD_ROOT_SECRETS_RETIRED of every server, and restart
them; 2. make it KEYHOLD_ROOT_SECRET and put the old one into KEYHOLD_ROOT_SECRETS_RETIRED, and restart them; 3. run \`keyhold secrets
promote <id>\` to wrap the signing keys under it, with the id that \`keyhold secrets list\` shows`;

/** Returns the path of the file with the root secrets. Throws `INVALID_ARGUMENT` with the steps to take if there is none. */
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
  return `Signing keys wrapped under it: ${count}.\n\`keyhold secrets list\` shows what the retired ones are still needed for.`;
}
