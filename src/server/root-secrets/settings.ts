import { invalidArgument } from "../../domain/errors.ts";
import { parseRootSecret, type RootSecrets } from "../../domain/server-keys.ts";
import { type Get, list } from "../config/values.ts";

/** Returns the root secrets or their file. Both are null with the embedded database, whose file in `dataDir` is created on first start. */
export function toRootSecrets(get: Get, isRequired: boolean) {
  const file = get("KEYHOLD_ROOT_SECRET_FILE") ?? null;
  const current = get("KEYHOLD_ROOT_SECRET");
  const retired = get("KEYHOLD_ROOT_SECRETS_RETIRED");
  if (file !== null && (current ?? retired) !== undefined) {
    const other = current === undefined ? "KEYHOLD_ROOT_SECRETS_RETIRED" : "KEYHOLD_ROOT_SECRET";
    throw invalidArgument(
      "KEYHOLD_ROOT_SECRET_FILE",
      `must not be set together with ${other}: the file also contains the retired root secrets`,
    );
  }
  if (current !== undefined) return { rootSecrets: parseRootSecrets(current, retired), rootSecretFile: null };
  if (retired !== undefined) throw invalidArgument("KEYHOLD_ROOT_SECRETS_RETIRED", "requires KEYHOLD_ROOT_SECRET");
  if (file === null && isRequired) {
    throw invalidArgument(
      "KEYHOLD_ROOT_SECRET",
      "is required with KEYHOLD_DATABASE_URL (or set KEYHOLD_ROOT_SECRET_FILE); use one secret on all servers; create it with: openssl rand -base64 32",
    );
  }
  return { rootSecrets: null, rootSecretFile: file };
}

function parseRootSecrets(current: string, retired: string | undefined): RootSecrets {
  if (current.includes(",")) {
    throw invalidArgument("KEYHOLD_ROOT_SECRET", "must not contain a comma, which separates retired secrets");
  }
  return {
    current: parseRootSecret(current, "KEYHOLD_ROOT_SECRET"),
    retired: list(retired).map((secret) => parseRootSecret(secret, "KEYHOLD_ROOT_SECRETS_RETIRED")),
  };
}
