import { parseArgs } from "node:util";
import { pino } from "pino";
import { readConfig } from "../../src/config.ts";
import { startService } from "../../src/start.ts";
import { replaceClock, setClockOffset } from "./clock.ts";
import { SABOTAGES, type Sabotage } from "./sabotage.ts";

/** The program of a node under test: the service itself, by its own configuration, on a clock that the parent sets by messages. */

const { values } = parseArgs({ options: { sabotage: { type: "string" }, clock: { type: "string", default: "0" } } });

replaceClock();
setClockOffset(Number(values.clock));
if (values.sabotage !== undefined) SABOTAGES[values.sabotage as Sabotage]();

process.on("message", (milliseconds: number) => setClockOffset(milliseconds));
process.on("disconnect", () => process.exit(0));

const config = readConfig();
await startService(config, pino({ level: config.logLevel }, pino.destination({ sync: true })));
process.send?.("serving");
