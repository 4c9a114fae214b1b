import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Fixture } from "../harness/fixture.ts";
import type { Installation } from "../subject/installation.ts";
import type { Operation, OperationRequest, OperationResponse } from "./protocol.ts";

/** Runs an operation in a separate process on the core of the servers. Resolves to operations per second. */
export type RunOperation = (work: Operation, count: number) => Promise<number>;

/** Starts the process on the database of an installation. */
export async function startInProcess(fixture: Fixture, { dataDir }: Installation): Promise<RunOperation> {
  const script = join(fixture.checkout, "bench/in-process/main.ts");
  const [program, ...args] = fixture.pinning.on("server", [process.execPath, script]);
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, KEYHOLD_DATA_DIR: dataDir },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  fixture.onClose(async () => {
    if (child.connected) child.disconnect();
    await ended;
  });
  const reply = () =>
    Promise.race([once(child, "message"), ended.then(() => Promise.reject(new Error("the process exited")))]);
  await reply();
  return async (work, count) => {
    const request: OperationRequest = { work, count };
    child.send(request);
    const answer: OperationResponse = (await reply())[0];
    if ("error" in answer) throw new Error(answer.error);
    return answer.rate;
  };
}
