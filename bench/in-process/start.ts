import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Stage } from "../harness/stage.ts";
import type { Installation } from "../subject/installation.ts";
import type { Order, Reply, Work } from "./protocol.ts";

/** Has work done in a process of its own on the core of the servers. Resolves with operations a second. */
export type Ask = (work: Work, count: number) => Promise<number>;

/** Starts the process on the database of an installation. */
export async function startInProcess(stage: Stage, { dataDir }: Installation): Promise<Ask> {
  const script = join(stage.checkout, "bench/in-process/main.ts");
  const [program, ...args] = stage.pinning.on("server", [process.execPath, script]);
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, KEYHOLD_DATA_DIR: dataDir },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  stage.onClose(async () => {
    if (child.connected) child.disconnect();
    await ended;
  });
  const reply = () => Promise.race([once(child, "message"), ended.then(() => Promise.reject(new Error("it ended")))]);
  await reply();
  return async (work, count) => {
    const order: Order = { work, count };
    child.send(order);
    const answer: Reply = (await reply())[0];
    if ("error" in answer) throw new Error(answer.error);
    return answer.rate;
  };
}
