import type { Socket } from "node:net";
import { startRoad } from "./road.ts";

/** A road to a database on which the connection ends at an answer, told by its number from when it is set. */
export async function startCuttingRoad(databaseUrl: string) {
  let answers = Number.POSITIVE_INFINITY;
  let isCut = false;
  const pass = (client: Socket, answer: Buffer) => {
    if (renewals.has(client) || answers-- > 0) return client.write(answer);
    isCut = true;
    answers = Number.POSITIVE_INFINITY;
    return client.resetAndDestroy();
  };
  /** Renewals of leases go by themselves, and are not counted. */
  const renewals = new WeakSet<Socket>();
  const follow = (client: Socket) => {
    client.once("data", (startup: Buffer) => {
      if (startup.includes("keyhold lease")) renewals.add(client);
    });
    return (answer: Buffer) => pass(client, answer);
  };
  return {
    ...(await startRoad(databaseUrl, follow)),
    /** Cuts at this answer, of those that come from now on over any connection. `Infinity`: at none. */
    cutAt: (answer: number) => {
      [answers, isCut] = [answer, false];
    },
    isCut: () => isCut,
  };
}
