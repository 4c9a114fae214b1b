import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AuditEvent } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import type { JsonObject } from "../../lib/json.ts";
import { jsonText, note, write } from "../output.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { restJson } from "../rest-json.ts";
import { eventPages } from "./events.ts";
import { apiActivity } from "./ocsf.ts";
import { timeOf } from "./selection.ts";

interface ExportOptions extends RemoteOptions {
  readonly afterSeq?: bigint;
  readonly since?: string;
  readonly format: keyof typeof FORMATS;
}

const FORMATS = { jsonl: restJson, ocsf: apiActivity } as const satisfies Record<
  string,
  (event: AuditEvent) => JsonObject
>;

/** Events per call: the limit of the server. */
const PAGE_SIZE = 1000;

/**
 * Writes events in the order of the log. A slow reader of the output slows the calls down; the memory is that of one page. The condition is one
 * on `seq`, by which each page takes the same time: with one on `time`, the database may sort all that is left for every page.
 */
export async function exportEvents(options: ExportOptions): Promise<void> {
  const { format, json } = options;
  const { audit } = await openRemote(options);
  const since = options.since === undefined ? 0 : Date.parse(timeOf("--since", options.since));
  const start = options.since === undefined ? options.afterSeq : await positionBefore(audit, since);
  const filter = start === undefined ? "" : `seq > ${start}`;
  let last = start;
  try {
    for await (const events of eventPages(audit, { filter, orderBy: "seq" }, { pageSize: PAGE_SIZE })) {
      const selected = events.filter(({ time }) => time === undefined || timestampMs(time) >= since);
      await write(selected.map((event) => `${jsonText(FORMATS[format](event))}\n`));
      last = events.at(-1)?.seq ?? last;
    }
  } finally {
    if (json !== true)
      note(last === undefined ? "no events" : `to continue, repeat the command with --after-seq ${last}`);
  }
}

/** Longer than any transaction: an event has its time when it is made, and its place in the log when its transaction has committed. */
const MAX_DELAY = 3_600_000;

/** Returns a position in the log after which all events are that were made since this time, in milliseconds; undefined: all are. */
async function positionBefore(audit: Remote["audit"], since: number): Promise<bigint | undefined> {
  const filter = `time < "${new Date(since - MAX_DELAY).toISOString()}"`;
  const { auditEvents } = await audit.listAuditEvents({ filter, orderBy: "time desc", pageSize: 1 });
  return auditEvents[0]?.seq;
}
