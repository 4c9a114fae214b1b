import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { setDefaultCACertificates } from "node:tls";
import { startDatabase } from "../faults/database.ts";
import { runKeyhold } from "../support/keyhold.ts";
import { WITHOUT_OWN_LIMITS } from "../support/own-limits.ts";
import { type CaseContext, createCaseContext } from "./case-context.ts";
import { Target } from "./target.ts";

const COMMON = {
  KEYHOLD_ROOT_SECRET: "hostile-root-secret-0123456789-abcdefghijklmn",
  KEYHOLD_CACHE_SIZE: "16",
  // A slow or busy machine must not cost a lease.
  KEYHOLD_LEASE_TTL: "15s",
  // All inputs come from one address, and must not be rejected for their rate.
  ...WITHOUT_OWN_LIMITS,
  KEYHOLD_GATEWAYS: "forward-auth,ext-authz",
};

const TLS = resolve(import.meta.dirname, "../support/tls/localhost");

/**
 * Runs `body` with servers on one database: with and without the fast path, with and without authentication, and one with TLS. Their
 * files are in this folder.
 */
export async function withTargets<T>(
  dir: string,
  body: (targets: readonly Target[], context: CaseContext) => Promise<T>,
): Promise<T> {
  const database = await startDatabase(dir);
  const common = { ...COMMON, KEYHOLD_DATABASE_URL: database.url(database.port) };
  const targets: Target[] = [];
  try {
    const token = await createToken(common);
    setDefaultCACertificates([await readFile(`${TLS}.cert.pem`, "utf8")]);
    for (const fastPath of ["on", "off"]) {
      const environment = { ...common, KEYHOLD_FAST_PATH: fastPath };
      const name = `fast path ${fastPath}`;
      const guarded = { name: `guarded, ${name}`, environment: { ...environment, KEYHOLD_AUTH: "admin-token" }, token };
      targets.push(new Target(guarded), new Target({ name: `open, ${name}`, environment, token: undefined }));
    }
    const tls = { KEYHOLD_TLS_CERT_FILE: `${TLS}.cert.pem`, KEYHOLD_TLS_KEY_FILE: `${TLS}.key.pem` };
    const environment = { ...common, ...tls, KEYHOLD_AUTH: "admin-token" };
    targets.push(new Target({ name: "guarded, TLS", environment, token }));
    for (const target of targets) await target.start();
    const [first] = targets;
    if (first === undefined) throw new Error("no server");
    return await body(targets, await createCaseContext(database.admin, first));
  } finally {
    await Promise.all(targets.map((target) => target.stop()));
    await database.stop();
  }
}

async function createToken(environment: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runKeyhold(["admin", "token", "create", "--name", "hostile"], environment);
  if (code !== 0) throw new Error(`no admin token: ${stderr}`);
  return stdout.trim();
}
