import type { AuditEvent } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import type { JsonObject } from "../../lib/json.ts";
import { jsonText, note, write } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { restJson } from "../rest-json.ts";
import { eventPages } from "./events.ts";
import { apiActivity } from "./ocsf.ts";
import { filterOf, type Selection } from "./selection.ts";

interface ExportOptions extends RemoteOptions, Selection {
  readonly afterSeq?: bigint;
  readonly format: keyof typeof FORMATS;
}

const FORMATS = { jsonl: restJson, ocsf: apiActivity } as const satisfies Record<
  string,
  (event: AuditEvent) => JsonObject
>;

/** Events per call: the limit of the server. */
const PAGE_SIZE = 1000;

/** Writes events in the order of the log. A slow reader of the output slows the calls down; the memory is that of one page. */
export async function exportEvents(options: ExportOptions): Promise<void> {
  const { afterSeq, format, json } = options;
  const { audit } = await openRemote(options);
  const filter = filterOf(options, ...(afterSeq === undefined ? [] : [`seq > ${afterSeq}`]));
  let last = afterSeq;
  try {
    for await (const events of eventPages(audit, { filter, orderBy: "seq" }, { pageSize: PAGE_SIZE })) {
      await write(events.map((event) => `${jsonText(FORMATS[format](event))}\n`));
      last = events.at(-1)?.seq ?? last;
    }
  } finally {
    if (json !== true)
      note(last === undefined ? "no events" : `to continue, repeat the command with --after-seq ${last}`);
  }
}
