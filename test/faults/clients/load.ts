import { setTimeout as sleep } from "node:timers/promises";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import type { Member } from "./member.ts";
import { Owner } from "./owner.ts";
import { COMMAND, noteFirstSigningKey, runSigningRotator } from "./signing-rotator.ts";
import { type Habit, type Interest, runVerifier } from "./verifier.ts";
import { BATCH_WAYS, SINGLE_WAYS } from "./verify.ts";

const OWNERS = 10;
const KEYS_OF_OWNER = 25;
const HOT_KEYS = 30;
/** Milliseconds that an owner rests at the most between two turns. */
const OWNER_PAUSE = 200;

/** The verifiers of each node. */
const HABITS: readonly Habit[] = [
  { ways: BATCH_WAYS, size: 50, pause: 120 },
  { ways: ["REST batch", "REST no-cache"], size: 20, pause: 120 },
  { ways: SINGLE_WAYS, size: 1, pause: 5 },
  { ways: SINGLE_WAYS, size: 1, pause: 5 },
];

/** All clients at work. */
export interface Load {
  /** Lets every client finish what it is at. */
  stop(): Promise<void>;
}

/** What the clients do besides. */
export interface LoadOptions {
  /** Of each owner of keys, the nodes that it sends changes to; by default ten owners that send theirs to any node. */
  readonly owners?: readonly (readonly Member[])[];
  readonly keysOfOwner?: number;
  /** Environment of the command that rotates signing keys; without it none is rotated. */
  readonly commandEnvironment?: Readonly<Record<string, string>>;
  /** The launchers of that command, one of which is picked each time; by default that of this checkout. */
  readonly commands?: readonly string[];
}

/** Starts the clients and resolves when there are keys to work on. */
export async function startLoad(
  history: History,
  members: readonly Member[],
  seeded: Seeded,
  {
    owners: homes = Array.from({ length: OWNERS }, () => members),
    keysOfOwner = KEYS_OF_OWNER,
    commandEnvironment,
    commands = [COMMAND],
  }: LoadOptions,
): Promise<Load> {
  await noteFirstSigningKey(history, members);
  const hot: Register[] = [];
  const touched = (register: Register) => {
    hot.push(register);
    if (hot.length > HOT_KEYS) hot.shift();
  };
  const owners = homes.map((changers) => new Owner({ history, members, changers, seeded: seeded.fork(), touched }));
  const interest: Interest = { hot, live: () => seeded.pick(owners).keys };
  await Promise.all(owners.map((owner) => fill(owner, keysOfOwner)));
  const over = new AbortController();
  const verifiers = members.flatMap((member) => HABITS.map((habit) => ({ member, habit, seeded: seeded.fork() })));
  const running = [
    ...owners.map((owner) => own(owner, keysOfOwner, seeded.fork(), over.signal)),
    ...verifiers.map((one) => runVerifier(history, one.member, one.habit, interest, one.seeded, over.signal)),
    commandEnvironment &&
      runSigningRotator(history, members, commands, commandEnvironment, interest, seeded.fork(), over.signal),
  ];
  return {
    stop: async () => {
      over.abort();
      await Promise.all(running);
      await history.settle();
    },
  };
}

async function fill(owner: Owner, keys: number): Promise<void> {
  while (owner.keys.length < keys) await owner.make();
}

async function own(owner: Owner, keys: number, seeded: Seeded, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (owner.keys.length < keys) await owner.make();
    else await owner.change();
    await sleep(seeded.below(OWNER_PAUSE));
  }
}
