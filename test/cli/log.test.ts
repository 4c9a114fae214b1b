import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const LOG = pathToFileURL(new URL("../../src/cli/log.ts", import.meta.url).pathname).href;

/** More than one write can take. */
const LINES = 200;

/** A process that logs its lines and then runs `andThen`. */
function logging(andThen: string): ChildProcess {
  const program = `
    import { createLog } from ${JSON.stringify(LOG)};
    const log = createLog("info");
    for (let line = 0; line < ${LINES}; line += 1) log.info({ line }, "a line");
    ${andThen}`;
  return spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: ["ignore", "pipe", "ignore"] });
}

async function linesOf({ stdout }: ChildProcess): Promise<number[]> {
  if (stdout === null) throw new Error("no output");
  const lines = await Array.fromAsync(createInterface({ input: stdout }));
  return lines.map((line) => JSON.parse(line).line);
}

const ENDS = [
  ["ends", "", 0],
  ["exits", "process.exit(3);", 3],
  ["fails", "throw new Error();", 1],
  ["fails later", "setImmediate(() => { throw new Error(); });", 1],
  ["has an unhandled rejection", "void Promise.reject(new Error());", 1],
  ["stops by a signal that it handles", "process.once('SIGTERM', () => {}); process.kill(process.pid, 'SIGTERM');", 0],
] as const;

test.each(ENDS)("writes every line, in order, when the process %s", async (_, andThen, status) => {
  const child = logging(andThen);
  const [lines, [code]] = await Promise.all([linesOf(child), once(child, "close")]);
  expect(lines).toEqual(Array.from({ length: LINES }, (_, line) => line));
  expect(code).toBe(status);
});

test("flushes a line after a delay", async () => {
  const child = logging("setInterval(() => {}, 60_000);");
  onTestFinished(() => void child.kill("SIGKILL"));
  if (child.stdout === null) throw new Error("no output");
  for await (const text of createInterface({ input: child.stdout })) {
    if (JSON.parse(text).line === LINES - 1) break;
  }
  expect(child.exitCode).toBeNull();
});

test("a closed log pipe is not a failure", async () => {
  const child = logging(
    "let count = 0; setInterval(() => { log.info('more'); if (++count > 30) process.exit(0); }, 5);",
  );
  child.stdout?.destroy();
  const [code] = await once(child, "exit");
  expect(code).toBe(0);
});
