import { readFile } from "node:fs/promises";
import type { RootSecrets } from "../../domain/server-keys.ts";
import type { Config } from "../../server/config/config.ts";
import { parseRootSecretFile, rootSecretFileOf } from "../../server/root-secrets/file.ts";
import { explain } from "../failure.ts";
import { hasCluster } from "./database.ts";
import { error, type Finding, ok } from "./finding.ts";

interface Read {
  readonly rootSecrets: RootSecrets | null;
  readonly findings: readonly Finding[];
}

/** The root secrets, or what is wrong with them; none where the first start will make one. */
export async function readRootSecrets(config: Config): Promise<Read> {
  const file = rootSecretFileOf(config);
  if (file === null) return { rootSecrets: config.rootSecrets, findings: [] };
  try {
    return { rootSecrets: parseRootSecretFile(await readFile(file, "utf8"), file), findings: [] };
  } catch (reason) {
    const isFirstStart = config.rootSecretFile === null && !(await hasCluster(config));
    const isAbsent = (reason as NodeJS.ErrnoException).code === "ENOENT";
    const toCome = ok(`no root secret yet: the server makes one at first start, in ${file}`);
    if (isFirstStart && isAbsent) return { rootSecrets: null, findings: [toCome] };
    return { rootSecrets: null, findings: [error(explain(reason), `restore ${file} from a backup`)] };
  }
}
