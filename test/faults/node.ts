import { parseArgs } from "node:util";
import { pino } from "pino";
import { readConfig } from "../../src/server/config/config.ts";
import { startService } from "../../src/server/start.ts";
import { replaceClock, setClockOffset } from "./clock.ts";
import { DEFECTS, type Defect } from "./fault-injection.ts";
import { type PausePoint, pauseAt, watchPausePoints } from "./pause-points.ts";
import { reportUsage } from "./usage.ts";

/** The program of a node under test: the service with its own configuration, and a clock that the parent controls by messages. */

export type NodeMessage = { readonly clock: number } | { readonly pauseAt: PausePoint | null };

const { values } = parseArgs({ options: { defect: { type: "string" }, clock: { type: "string", default: "0" } } });

replaceClock();
setClockOffset(Number(values.clock));
if (values.defect !== undefined) DEFECTS[values.defect as Defect]();
watchPausePoints();
reportUsage();

process.on("message", (message: NodeMessage) => {
  if ("clock" in message) setClockOffset(message.clock);
  else pauseAt(message.pauseAt);
});
process.on("disconnect", () => process.exit(0));

const config = readConfig();
const service = await startService(config, pino({ level: config.logLevel }, pino.destination({ sync: true })));
process.on("SIGTERM", async () => {
  await service.close();
  process.exit(0);
});
process.send?.("serving");
