import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { AlgorithmName } from "../../../src/token/jwt/algorithms.ts";
import { paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { History } from "../history.ts";
import { derive } from "./derive.ts";
import type { Member } from "./member.ts";
import type { KeyPools } from "./verifier.ts";
import { verifyOnAllNodes } from "./verify.ts";

/** The launcher of this checkout. */
export const COMMAND = resolve(import.meta.dirname, "../../../src/cli/keyhold.js");

/** Records the signing key before the first rotation. */
export async function noteFirstSigningKey(history: History, [member]: readonly Member[]): Promise<void> {
  const answer = await member?.rest.send("GET", paths.jwks);
  history.rotations.push({ began: 0, acknowledged: 0, kid: answer?.body.keys[0].kid });
}

/** One of the commands and one of the algorithms is chosen for each rotation. */
export interface Rotations {
  /** Launchers of the command. */
  readonly commands: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Algorithms of the new keys. */
  readonly algorithms: readonly AlgorithmName[];
}

/** Rotates the signing key by the command at random intervals, and derives tokens on all nodes right after each rotation. */
export async function runSigningRotator(
  history: History,
  members: readonly Member[],
  { commands, environment, algorithms }: Rotations,
  pools: KeyPools,
  seeded: Seeded,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const setting = { KEYHOLD_SIGNING_ALGORITHM: seeded.pick(algorithms) };
    await rotate(history, seeded.pick(commands), { ...environment, ...setting });
    const issued = pools.live().filter(({ kind }) => kind === "issued");
    if (issued.length > 0)
      await Promise.all(members.map((member) => deriveOn(history, member, members, seeded.pick(issued), seeded)));
    await sleep(4_000 + seeded.below(4_000), undefined, { signal }).catch(() => {});
  }
}

async function rotate(history: History, command: string, environment: Readonly<Record<string, string>>): Promise<void> {
  const rotation: History["rotations"][number] = { began: performance.now(), acknowledged: null, kid: null };
  history.rotations.push(rotation);
  const env = { PATH: process.env.PATH, ...environment };
  const options = { env, timeout: 20_000 };
  const output = await promisify(execFile)(process.execPath, [command, "signing-keys", "rotate"], options).catch(
    () => null,
  );
  if (output === null) return;
  rotation.acknowledged = performance.now();
  rotation.kid = output.stdout.trim();
}

async function deriveOn(
  history: History,
  member: Member,
  members: readonly Member[],
  register: History["registers"][number],
  seeded: Seeded,
): Promise<void> {
  await history.track(derive(history, member, register, seeded, "JWT"));
  verifyOnAllNodes(history, members, register, seeded);
}
