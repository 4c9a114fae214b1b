/** What of package-lock.json is looked at (https://docs.npmjs.com/cli/configuring-npm/package-lock-json). */
export interface Lockfile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly deprecated?: string;
  readonly hasInstallScript?: boolean;
  readonly link?: boolean;
  /** Whether no package that runs in production needs it. */
  readonly dev?: boolean;
}

/** Returns the name of the package at a path such as `node_modules/a/node_modules/@s/b`. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** Returns whether the path is that of an installed package, and not of a folder of this repository. */
export function isInstalled(path: string): boolean {
  return path.startsWith("node_modules/");
}

/** The packages of this repository: links to its folders, which have no archive. */
const OWN: Readonly<Record<string, string>> = { "@keyhold/client": "packages/client", "keyhold-console": "console" };

/** Returns what is wrong with the locked packages, by the name of each. `allowScripts` is that of package.json. */
export function lockfileViolations(
  { packages }: Lockfile,
  allowScripts: Readonly<Record<string, boolean>>,
): readonly string[] {
  return Object.entries(packages)
    .filter(([path]) => isInstalled(path))
    .flatMap(([path, locked]) => {
      const name = nameOf(path);
      if (locked.link && locked.resolved !== undefined && locked.resolved === OWN[name]) return [];
      return violations(locked, name in allowScripts).map((what) => `${name} ${locked.version ?? ""}: ${what}`);
    });
}

function violations(locked: LockedPackage, mayHaveScript: boolean): string[] {
  const { integrity = "", resolved, deprecated, hasInstallScript, link } = locked;
  return [
    ...(integrity.startsWith("sha512-") ? [] : ["no SHA-512 of its content"]),
    ...(link || (resolved !== undefined && !resolved.startsWith("https://")) ? ["not from a registry"] : []),
    ...(deprecated === undefined ? [] : [`deprecated: ${deprecated}`]),
    ...(hasInstallScript && !mayHaveScript ? ["has an install script that allowScripts does not name"] : []),
  ];
}
