import { useQuery } from "@connectrpc/connect-query";
import { Text } from "@mantine/core";
import { ActorsService } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type UsageCount, UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { useCan } from "../../session/permissions.ts";
import { useLanguage, useTexts } from "../../texts/language.tsx";
import { outcomeName, usage } from "../../texts/usage.ts";
import { type Column, DataTable } from "../data-table.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { LinkAnchor } from "../links.tsx";
import { PageLoader } from "../page-loader.tsx";
import { stepsOf } from "./usage-period.ts";
import { requestOf, searchOf, type UsageSelection } from "./usage-search.ts";

const { listApiKeys, getApiKey } = ApiKeysService.method;
const { listActors } = ActorsService.method;

/** Rows: the keys of as many fit into one filter. */
const MAX_ROWS = 40;

interface Props {
  readonly selection: UsageSelection;
  /** The sum of what is selected; undefined: not known, or of limits that have nothing in common. */
  readonly total: number | undefined;
}

/** Lists what was counted most: by outcome, key, actor or limit. */
export function UsageRanking({ selection, total }: Props) {
  const t = useTexts(usage);
  const { language } = useLanguage();
  const { by, period, isUnits } = selection;
  const { startTime } = stepsOf(period);
  const request = { ...requestOf(selection), startTime, groupBy: [by], pageSize: MAX_ROWS };
  const { data, error, refetch } = useQuery(UsageService.method.queryUsage, request);
  const names = useKeyNames(data?.usageCounts.flatMap(({ keyId }) => keyId || []) ?? []);
  if (error !== null) return <ErrorAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <PageLoader />;
  const amountOf = ({ count, units }: UsageCount) => Number(count + units);
  const share = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 });
  const columns: readonly Column<UsageCount>[] = [
    { header: t.groupings[by], cell: (row) => <Subject row={row} name={names.get(row.keyId)} /> },
    { header: isUnits ? t.units : t.verifications, cell: (row) => amountOf(row).toLocaleString(language) },
    ...(total ? [{ header: t.share, cell: (row: UsageCount) => share.format(amountOf(row) / total) }] : []),
    { header: t.narrower, cell: (row) => <Narrower row={row} selection={selection} /> },
  ];
  return (
    <>
      {data.nextPageToken !== "" && <Text size="sm">{t.top(MAX_ROWS)}</Text>}
      <DataTable label={t.ranking(t.groupings[by])} columns={columns} rows={data.usageCounts} idOf={idOf} />
    </>
  );
}

function idOf({ keyId, actorId, outcome, limit }: UsageCount): string {
  return [keyId, actorId, outcome, limit].join();
}

/** Reads the names of keys. Those that are deleted have none. */
function useKeyNames(ids: readonly string[]): ReadonlyMap<string, string> {
  const can = useCan();
  const filter = ids.map((id) => `key_id="${id}"`).join(" OR ");
  const request = { filter, pageSize: MAX_ROWS };
  const { data } = useQuery(listApiKeys, request, { enabled: ids.length > 0 && can(listApiKeys) });
  return new Map(data?.apiKeys.map(({ keyId, name }) => [keyId, name]));
}

interface SubjectProps {
  readonly row: UsageCount;
  /** The name of the key; undefined: it is deleted, or the row is of something else. */
  readonly name: string | undefined;
}

function Subject({ row: { keyId, actorId, outcome, limit }, name }: SubjectProps) {
  const t = useTexts(usage);
  const can = useCan();
  if (outcome !== "") return outcomeName(t, outcome);
  if (limit !== "") return limit;
  if (keyId !== "" && (name === undefined || !can(getApiKey))) return name ?? keyId;
  if (keyId !== "")
    return (
      <LinkAnchor to="/keys/$keyId" params={{ keyId }}>
        {name}
      </LinkAnchor>
    );
  if (actorId === "") return t.noActor;
  return can(listActors) ? (
    <LinkAnchor to="/actors/$actorId" params={{ actorId }}>
      {actorId}
    </LinkAnchor>
  ) : (
    actorId
  );
}

/** A link to what the count of a row consists of. */
function Narrower({ row, selection }: { readonly row: UsageCount; readonly selection: UsageSelection }) {
  const t = useTexts(usage);
  const { keyId, actorId, outcome, limit } = row;
  if (keyId === "" && actorId === "" && outcome === "" && limit === "") return null;
  const search = searchOf(
    keyId === ""
      ? {
          ...selection,
          by: "key",
          actor: actorId || selection.actor,
          outcome: outcome || selection.outcome,
          limit: limit || selection.limit,
        }
      : { ...selection, by: "outcome", key: keyId },
  );
  return (
    <LinkAnchor to="/usage" search={search}>
      {keyId === "" ? t.whichKeys : t.onlyKey}
    </LinkAnchor>
  );
}
