import { setTimeout as sleep } from "node:timers/promises";
import { ALGORITHM_NAMES, type AlgorithmName } from "../../../src/token/jwt/algorithms.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import type { Member } from "./member.ts";
import { Owner } from "./owner.ts";
import { COMMAND, noteFirstSigningKey, runSigningRotator } from "./signing-rotator.ts";
import { type KeyPools, runVerifier, type VerifierProfile } from "./verifier.ts";
import { BATCH_METHODS, SINGLE_METHODS } from "./verify.ts";

const OWNERS = 10;
const KEYS_OF_OWNER = 25;
const HOT_KEYS = 30;
/** Maximum pause of an owner between two changes, in milliseconds. */
const OWNER_PAUSE = 200;

/** The verifiers on each node. */
const VERIFIER_PROFILES: readonly VerifierProfile[] = [
  { methods: BATCH_METHODS, size: 50, pause: 120 },
  { methods: ["REST batch", "REST no-cache"], size: 20, pause: 120 },
  { methods: SINGLE_METHODS, size: 1, pause: 5 },
  { methods: SINGLE_METHODS, size: 1, pause: 5 },
];

/** Running clients. */
export interface Load {
  /** Stops the clients after their requests in flight. */
  stop(): Promise<void>;
}

/** Additional work of the clients. */
export interface LoadOptions {
  /** For each owner of keys, the nodes that it sends changes to. Default: ten owners, each for all nodes. */
  readonly owners?: readonly (readonly Member[])[];
  readonly keysOfOwner?: number;
  /** Whether keys are disabled and enabled, which servers of release 0.2 and earlier prevent. Default: true. */
  readonly mayDisable?: boolean;
  /** Whether signing keys are revoked too, which servers of release 0.2 and earlier apply some milliseconds late. Default: true. */
  readonly mayRevokeSigningKeys?: boolean;
  /** Environment of the command that rotates signing keys; without it there are no rotations. */
  readonly commandEnvironment?: Readonly<Record<string, string>>;
  /** The launchers of that command, one of which is chosen for each rotation. Default: that of this checkout. */
  readonly commands?: readonly string[];
  /** The algorithms of new signing keys, one of which is chosen for each rotation. Default: all. */
  readonly algorithms?: readonly AlgorithmName[];
}

/** Starts the clients. Resolves when the first keys exist and, if signing keys are rotated, the first was revoked, or rotated, without a fault. */
export async function startLoad(
  history: History,
  members: readonly Member[],
  seeded: Seeded,
  {
    owners: targetsOfOwners = Array.from({ length: OWNERS }, () => members),
    keysOfOwner = KEYS_OF_OWNER,
    mayDisable = true,
    mayRevokeSigningKeys = true,
    commandEnvironment,
    commands = [COMMAND],
    algorithms = ALGORITHM_NAMES,
  }: LoadOptions,
): Promise<Load> {
  await noteFirstSigningKey(history, members);
  const hot: Register[] = [];
  const onChanged = (register: Register) => {
    hot.push(register);
    if (hot.length > HOT_KEYS) hot.shift();
  };
  const owners = targetsOfOwners.map(
    (targets) => new Owner({ history, members, targets, seeded: seeded.fork(), mayDisable, onChanged }),
  );
  const pools: KeyPools = { hot, live: () => seeded.pick(owners).keys };
  await Promise.all(owners.map((owner) => createKeys(owner, keysOfOwner)));
  const over = new AbortController();
  const verifiers = members.flatMap((member) =>
    VERIFIER_PROFILES.map((profile) => ({ member, profile, seeded: seeded.fork() })),
  );
  const firstChange = Promise.withResolvers<void>();
  const rotating =
    commandEnvironment &&
    runSigningRotator(
      history,
      members,
      { commands, environment: commandEnvironment, algorithms, mayRevoke: mayRevokeSigningKeys },
      pools,
      seeded.fork(),
      over.signal,
      firstChange.resolve,
    );
  const running = [
    ...owners.map((owner) => runOwner(owner, keysOfOwner, seeded.fork(), over.signal)),
    ...verifiers.map((one) => runVerifier(history, one.member, one.profile, pools, one.seeded, over.signal)),
    rotating,
  ];
  if (rotating !== undefined) await Promise.race([firstChange.promise, rotating]);
  return {
    stop: async () => {
      over.abort();
      await Promise.all(running);
      await history.settle();
    },
  };
}

async function createKeys(owner: Owner, keys: number): Promise<void> {
  while (owner.keys.length < keys) await owner.make();
}

async function runOwner(owner: Owner, keys: number, seeded: Seeded, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (owner.keys.length < keys) await owner.make();
    else await owner.change();
    await sleep(seeded.below(OWNER_PAUSE));
  }
}
