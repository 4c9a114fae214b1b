import type { AuditEvent } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { displayValue, write, writeFields, writeJson } from "../output.ts";
import { type PageRequest, type PagingOptions, pagesOf } from "../pages.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { restJson, writeList } from "../rest-json.ts";
import { filterOf, type Selection } from "./selection.ts";

type ListOptions = RemoteOptions & Selection & PagingOptions & { readonly orderBy?: string };

/** Lists events page by page. */
export async function list(options: ListOptions): Promise<void> {
  const { audit } = await openRemote(options);
  const pages = eventPages(audit, { filter: filterOf(options), orderBy: options.orderBy }, options);
  await writeEvents(pages, options);
}

/** Yields the pages of a list of events. */
export function eventPages(
  audit: Remote["audit"],
  query: { readonly filter: string; readonly orderBy: string | undefined },
  paging: PagingOptions,
): AsyncGenerator<readonly AuditEvent[]> {
  const read = async (page: PageRequest) => {
    const { auditEvents, nextPageToken } = await audit.listAuditEvents({ ...query, ...page });
    return [auditEvents, nextPageToken] as const;
  };
  return pagesOf(read, paging);
}

/** Writes events as a table or as a JSON array. */
export function writeEvents(pages: AsyncIterable<readonly AuditEvent[]>, options: RemoteOptions): Promise<void> {
  return writeList(pages, COLUMNS, "no events", options, (event) => ({
    ...restJson(event),
    subject: event.keyId || event.resourceId,
    caller: event.caller?.name ?? "",
  }));
}

const COLUMNS = {
  seq: "SEQ",
  time: "TIME",
  action: "ACTION",
  subject: "KEY OR RESOURCE",
  actor_id: "ACTOR",
  caller: "CALLER",
  client_ip: "CLIENT IP",
  reason: "REASON",
};

export async function get(seq: bigint, options: RemoteOptions): Promise<void> {
  const { audit } = await openRemote(options);
  const event = restJson(await audit.getAuditEvent({ seq }));
  if (options.json === true) return writeJson(event);
  const { changes = [], ...fields } = event;
  await writeFields(withCallerFields(fields));
  if (Array.isArray(changes)) await write(changes.filter(isJsonObject).map(changeText));
}

/** Returns the fields with those of the caller by their paths. */
function withCallerFields(fields: JsonObject): JsonObject {
  const entries = Object.entries(fields).flatMap(([name, value]) =>
    isJsonObject(value) ? Object.entries(value).map(([inner, text]) => [`${name}.${inner}`, text]) : [[name, value]],
  );
  return Object.fromEntries(entries);
}

function changeText({ field = "", before = null, after = null }: JsonObject): string {
  const [was, becomes] = [before, after].map((value) => (value === null ? "-" : displayValue(value)));
  return `${displayValue(field)}: ${was} → ${becomes}\n`;
}
