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
  /** Whether keys are revoked too. */
  readonly mayRevoke: boolean;
}

/**
 * Revokes a signing key, and rotates it twice, in turn, by the command at random intervals, and derives tokens on all nodes right after each
 * change. Before a revocation, the tokens of the key are in use on all nodes. Calls `onChange` after each change.
 */
export async function runSigningRotator(
  history: History,
  members: readonly Member[],
  { commands, environment, algorithms, mayRevoke }: Rotations,
  pools: KeyPools,
  seeded: Seeded,
  signal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    const setting = { KEYHOLD_SIGNING_ALGORITHM: seeded.pick(algorithms) };
    const command = seeded.pick(commands);
    const kid = mayRevoke && turn % 3 === 0 ? chooseKey(history, seeded) : undefined;
    if (kid === undefined) await rotate(history, command, { ...environment, ...setting });
    else await revoke(history, command, { ...environment, ...setting }, kid);
    onChange();
    const issued = pools.live().filter(({ kind }) => kind === "issued");
    if (issued.length > 0)
      await Promise.all(members.map((member) => deriveOn(history, member, members, seeded.pick(issued), seeded)));
    await sleep(4_000 + seeded.below(4_000), undefined, { signal }).catch(() => {});
  }
}

async function rotate(history: History, command: string, environment: Readonly<Record<string, string>>): Promise<void> {
  const rotation: History["rotations"][number] = { began: performance.now(), acknowledged: null, kid: null };
  history.rotations.push(rotation);
  const output = await run(command, ["rotate"], environment);
  if (output === null) return;
  rotation.acknowledged = performance.now();
  rotation.kid = output.trim();
}

/** Returns the `kid` of a key that is not revoked, half of the time the newest one, which is usually active; undefined if none is known. */
function chooseKey({ rotations, revocations }: History, seeded: Seeded): string | undefined {
  const gone = new Set(revocations.map(({ kid }) => kid));
  const kids = rotations.flatMap(({ kid }) => (kid === null || gone.has(kid) ? [] : [kid]));
  if (kids.length === 0) return undefined;
  return seeded.below(2) === 0 ? kids.at(-1) : seeded.pick(kids);
}

/** Revokes a key. If it is the active one, this is a rotation too. */
async function revoke(
  history: History,
  command: string,
  environment: Readonly<Record<string, string>>,
  kid: string,
): Promise<void> {
  const began = performance.now();
  const revocation: History["revocations"][number] = { kid, began, acknowledged: null };
  const rotation: History["rotations"][number] = { began, acknowledged: null, kid: null };
  history.revocations.push(revocation);
  history.rotations.push(rotation);
  const output = await run(command, ["revoke", kid, "--json"], environment);
  if (output === null) return;
  const acknowledged = performance.now();
  const { active } = JSON.parse(output);
  revocation.acknowledged = acknowledged;
  if (active === undefined) history.rotations.splice(history.rotations.indexOf(rotation), 1);
  else Object.assign(rotation, { acknowledged, kid: active });
}

/** Runs the command and returns its output; null if it failed, so that its effect is unknown. */
async function run(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string | null> {
  const env = { PATH: process.env.PATH, ...environment };
  const options = { env, timeout: 20_000 };
  const output = await promisify(execFile)(process.execPath, [command, "signing-keys", ...args], options).catch(
    () => null,
  );
  return output?.stdout ?? null;
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
