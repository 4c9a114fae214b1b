import { useNavigate } from "@tanstack/react-router";
import { audit } from "../../texts/audit.ts";
import { useTexts } from "../../texts/language.tsx";
import { FilterBar } from "../filter-bar.tsx";
import { quoted } from "../filter-text.ts";

interface Props {
  readonly filter: readonly string[];
}

/** The filter of the audit log. */
export function AuditFilters({ filter }: Props) {
  const t = useTexts(audit);
  const navigate = useNavigate({ from: "/audit" });
  return (
    <FilterBar
      filter={filter}
      onChange={(parts) => void navigate({ to: "/audit", search: (before) => ({ ...before, filter: parts }) })}
      search={t.search}
      searchHint={t.searchHint}
      searchFilter={eventFilter}
      filterHint={t.filterHint}
      suggested={[
        [t.lastDay, 'time > now() - "1d"'],
        [t.revocations, 'action="key.revoked"'],
        [t.denied, 'action="call.denied"'],
        [t.keyChanges, 'action="key.*"'],
        [t.serverKeys, 'action="signing_key.*" OR action="hmac_key.*" OR action="root_secret.*"'],
        [t.limits, 'action="limit.exceeded"'],
      ]}
    />
  );
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]*)$/i;
const ACTION = /^[a-z_]+\.(?:[a-z_]+|\*)$/;

/** Returns the expression that finds events by what people know of them: the key, the address, the type, the actor or the caller. */
export function eventFilter(text: string): string {
  if (UUID.test(text)) return `key_id=${quoted(text)}`;
  if (ADDRESS.test(text)) return `client_ip=${quoted(text)}`;
  // The star is a wildcard.
  if (ACTION.test(text)) return `action=${text.endsWith("*") ? quoted(text.slice(0, -1), "*") : quoted(text)}`;
  return `actor_id=${quoted(text)} OR caller=${quoted(text)}`;
}
