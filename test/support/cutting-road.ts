import type { Socket } from "node:net";
import { startRoad } from "./road.ts";

/** A road to a database on which the connection ends at an answer, told by its number from when it is set. */
export async function startCuttingRoad(databaseUrl: string) {
  let answers = Number.POSITIVE_INFINITY;
  let isCut = false;
  const pass = (client: Socket, answer: Buffer) => {
    if (answers-- > 0) return client.write(answer);
    isCut = true;
    answers = Number.POSITIVE_INFINITY;
    return client.resetAndDestroy();
  };
  return {
    ...(await startRoad(databaseUrl, (client) => (answer) => pass(client, answer))),
    /** Cuts at this answer, of those that come from now on over any connection. `Infinity`: at none. */
    cutAt: (answer: number) => {
      [answers, isCut] = [answer, false];
    },
    isCut: () => isCut,
  };
}
