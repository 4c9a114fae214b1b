import { Code, ConnectError } from "@connectrpc/connect";
import type { AuditEvent, WatchAuditEventsResponse } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { parseDuration } from "../../domain/duration.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { explain } from "../failure.ts";
import { note, writeJson } from "../output.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { restJson } from "../rest-json.ts";
import { isTransient, type RetryOptions, withRetries } from "../retry.ts";
import { interruption } from "../signals.ts";
import { writeEvents } from "./events.ts";
import { filterOf, type Selection } from "./selection.ts";

interface WatchOptions extends RemoteOptions, Selection {
  readonly fromSeq?: bigint;
  readonly resumeToken?: string;
  readonly retryFor: string;
}

/** Where the stream begins. The token is that of the last event that was written. */
interface Position {
  readonly startSeq: bigint | undefined;
  resumeToken: string;
}

/** Prints events until SIGINT or SIGTERM. After a lost connection, it continues behind the last event. */
export async function watch(options: WatchOptions): Promise<void> {
  const { fromSeq, resumeToken = "", json } = options;
  const retryFor = parseDuration(options.retryFor, "--retry-for");
  const filter = filterOf(options);
  const { audit } = await openRemote(options);
  const isResumed = fromSeq !== undefined || resumeToken !== "";
  const position = { startSeq: isResumed ? fromSeq : await endOf(audit), resumeToken };
  const signal = interruption();
  const onUnreachable = (error: ConnectError) => {
    if (json !== true) note(`${explain(error)}; retrying`);
  };
  const events = follow(audit, filter, position, { retryFor, signal, onUnreachable });
  try {
    if (json === true) for await (const [event] of events) await writeJson(restJson(event));
    else await writeEvents(events, options);
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exitCode = EXIT_STATUS.interrupted;
  } finally {
    const { startSeq, resumeToken: token } = position;
    if (json !== true)
      note(
        `to continue, repeat the command with ${token === "" ? `--from-seq ${startSeq}` : `--resume-token ${token}`}`,
      );
  }
}

/** Returns the position of the next event, so that none is missed if the first connection is lost before a token is received. */
async function endOf(audit: Remote["audit"]): Promise<bigint> {
  const { auditEvents } = await audit.listAuditEvents({ orderBy: "seq desc", pageSize: 1 });
  return (auditEvents[0]?.seq ?? -1n) + 1n;
}

/** Yields each event once, alone. Advances the position when the consumer asks for the next one. */
async function* follow(
  audit: Remote["audit"],
  filter: string,
  position: Position,
  retry: RetryOptions,
): AsyncGenerator<readonly [AuditEvent]> {
  for (;;) {
    const open = () => begin(audit.watchAuditEvents({ ...position, filter }, { signal: retry.signal }));
    const responses = await withRetries(open, retry);
    try {
      for await (const { auditEvent, resumeToken } of responses) {
        if (auditEvent !== undefined) yield [auditEvent];
        position.resumeToken = resumeToken;
      }
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
  }
}

/** Resolves with the responses once the first one has arrived: only then is the server known to be reachable. */
async function begin(
  stream: AsyncIterable<WatchAuditEventsResponse>,
): Promise<AsyncIterable<WatchAuditEventsResponse>> {
  const responses = stream[Symbol.asyncIterator]();
  const first = await responses.next();
  if (first.done === true) throw new ConnectError("the server has ended the stream", Code.Unavailable);
  return (async function* () {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => responses };
  })();
}
