import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { succeed } from "../support/programs/run.ts";
import { substitute } from "./gateway.ts";

export const TRAEFIK_VERSION = "v3.6.12";

/** `KEYHOLD_TRAEFIK=off` leaves Traefik out, since building it takes minutes. */
export const hasTraefik = process.env.KEYHOLD_TRAEFIK !== "off";

/** The client of ACME: its providers of DNS are a third of the packages that Traefik is built from, and some cannot be downloaded. */
const ACME = "pkg/provider/acme/provider.go";
const WITHOUT_DNS_PROVIDERS = {
  '"github.com/go-acme/lego/v4/providers/dns"': "",
  "dns.NewDNSChallengeProviderByName(p.DNSChallenge.Provider)": 'nil, errors.New("built without DNS providers")',
};

/** Builds Traefik from its Go module, once, and returns the path of the program. No registry has it as a program. */
export async function buildTraefik(folder: string): Promise<string> {
  const program = join(folder, `traefik-${TRAEFIK_VERSION}`);
  if (existsSync(program)) return program;
  const source = join(folder, "traefik-source");
  await mkdir(folder, { recursive: true });
  await rm(source, { recursive: true, force: true });
  const args = ["mod", "download", "-json", `github.com/traefik/traefik/v3@${TRAEFIK_VERSION}`];
  const { Dir: module } = JSON.parse(await succeed({ program: "go", args, cwd: folder }));
  // The files of the module cache are read-only.
  await succeed({ program: "cp", args: ["-r", "--no-preserve=mode", module, source], cwd: folder });
  await writeFile(join(source, ACME), substitute(await readFile(join(source, ACME), "utf8"), WITHOUT_DNS_PROVIDERS));
  // Compiled without optimizations, which takes half of the time.
  const build = ["build", "-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", `${program}.new`, "./cmd/traefik"];
  await succeed({ program: "go", args: build, cwd: source });
  await rename(`${program}.new`, program);
  await rm(source, { recursive: true, force: true });
  return program;
}
