import { Button, Group, NativeSelect, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";
import { OUTCOMES, outcomeName, usage } from "../../texts/usage.ts";
import { PERIOD_NAMES } from "./usage-period.ts";
import { GROUPINGS, searchOf, type UsageSelection } from "./usage-search.ts";

/** What the page of the usage shows. The URL has it. */
export function UsageFilters({ selection }: { readonly selection: UsageSelection }) {
  const t = useTexts(usage);
  const { kinds } = useTexts(key);
  const navigate = useNavigate();
  const { period, by, actor, key: keyId, kind, limit, outcome, isUnits } = selection;
  const apply = (changed: Partial<UsageSelection>) =>
    void navigate({ to: "/usage", search: searchOf({ ...selection, ...changed }) });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const entered = Object.entries(Object.fromEntries(new FormData(event.currentTarget)));
    apply(Object.fromEntries(entered.map(([name, value]) => [name, String(value).trim()])));
  };
  const any = { value: "", label: t.any };
  return (
    <search>
      <Stack gap="xs">
        <Group gap="md" align="end">
          <SegmentedControl
            aria-label={t.period}
            value={period}
            data={PERIOD_NAMES.map((value) => ({ value, label: t.periods[value] }))}
            onChange={(value) => apply({ period: value })}
          />
          <NativeSelect
            label={t.by}
            value={by}
            data={GROUPINGS.filter((value) => limit === "" || value !== "outcome").map((value) => ({
              value,
              label: t.groupings[value],
            }))}
            onChange={({ currentTarget }) => apply({ by: GROUPINGS.find((one) => one === currentTarget.value) ?? by })}
          />
        </Group>
        {/* The fields show what the URL has, also after going back. */}
        <form onSubmit={submit} key={JSON.stringify(selection)}>
          <Group align="end" gap="xs">
            <TextInput name="actor" label={t.actor} defaultValue={actor} flex="1 1 9rem" />
            <TextInput name="key" label={t.key} defaultValue={keyId} flex="2 1 12rem" />
            <NativeSelect
              name="kind"
              label={t.kind}
              defaultValue={kind}
              data={[any, { value: "issued", label: kinds[1] }, { value: "imported", label: kinds[2] }]}
            />
            {!isUnits && (
              <NativeSelect
                name="outcome"
                label={t.outcome}
                defaultValue={outcome}
                data={[any, ...OUTCOMES.map((value) => ({ value, label: outcomeName(t, value) }))]}
              />
            )}
            <TextInput name="limit" label={t.limit} defaultValue={limit} flex="1 1 9rem" />
            <Button type="submit" variant="default">
              {t.apply}
            </Button>
            <Button variant="subtle" onClick={() => apply({ actor: "", key: "", kind: "", limit: "", outcome: "" })}>
              {t.clear}
            </Button>
          </Group>
        </form>
      </Stack>
    </search>
  );
}
