import { useNavigate } from "@tanstack/react-router";
import { secretHead } from "../../session/page-settings.ts";
import { keys } from "../../texts/keys.ts";
import { useTexts } from "../../texts/language.tsx";
import { FilterBar } from "../filter-bar.tsx";
import { quoted } from "../filter-text.ts";

/** The filter of the list of keys. */
export function KeyFilters({ filter }: { readonly filter: readonly string[] }) {
  const t = useTexts(keys);
  const navigate = useNavigate();
  return (
    <FilterBar
      filter={filter}
      onChange={(parts) => void navigate({ to: "/keys", search: { filter: parts } })}
      search={t.search}
      searchHint={t.searchHint}
      searchFilter={searchFilter}
      filterHint={t.filterHint}
      suggested={[
        [t.active, "status=active"],
        [t.expiring, 'expire_time > now() AND expire_time <= now() + "30d"'],
        [t.unused, 'NOT last_used_time >= now() - "90d" AND create_time < now() - "90d"'],
        [t.adminTokens, ADMIN_TOKENS],
      ]}
    />
  );
}

const ADMIN_TOKENS = ["admin", "keys.read", "keys.write", "audit", "webhooks", "verify", "derive"]
  .map((scope) => `scopes:"keyhold:${scope}"`)
  .join(" OR ");

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns the expression that finds keys by what people know of them: the id, the last four characters, the actor, or the name. */
export function searchFilter(text: string): string {
  if (UUID.test(text)) return `key_id=${quoted(text)}`;
  const alternatives = [`name=${quoted(text, "*")}`, `actor_id=${quoted(text)}`];
  if ([...text].length === 4)
    alternatives.push(...[`${secretHead}…${text}`, `…${text}`].map((hint) => `hint=${quoted(hint)}`));
  return alternatives.join(" OR ");
}
