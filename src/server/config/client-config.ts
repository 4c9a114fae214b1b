import { join } from "node:path";
import { invalidArgument } from "../../domain/errors.ts";
import { type Environment, serverUrl } from "./values.ts";

/** Returns the configuration of the commands that call a running server. Pure. Throws `INVALID_ARGUMENT` naming the variable. */
export function toClientConfig(environment: Environment) {
  const get = (name: string) => environment[name]?.trim() || null;
  const token = get("KEYHOLD_TOKEN");
  const tokenFile = get("KEYHOLD_TOKEN_FILE");
  const url = get("KEYHOLD_URL");
  const home = get("HOME") ?? get("USERPROFILE");
  const configHome = get("XDG_CONFIG_HOME") ?? (home === null ? null : join(home, ".config"));
  if (token !== null && tokenFile !== null)
    throw invalidArgument("KEYHOLD_TOKEN_FILE", "must not be set together with KEYHOLD_TOKEN");
  return {
    /** Null: not set. */
    url: url === null ? null : serverUrl("KEYHOLD_URL", url),
    /** The admin token, or the file that contains it; null: none is sent. */
    token,
    tokenFile,
    /** A file of certificates that are trusted in addition to those of Node. */
    caFile: get("KEYHOLD_CA_FILE"),
    /** Where `keyhold login` stores its context (XDG Base Directory Specification); null without a home folder. */
    contextFile: configHome === null ? null : join(configHome, "keyhold", "context.json"),
  };
}
