import { Button, Checkbox, Fieldset, Group, NativeSelect, TextInput } from "@mantine/core";
import { type Quota, type RateLimit, RateLimitEnforcement } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { useTexts } from "../texts/language.tsx";
import { limits } from "../texts/limits.ts";

const MAX_INT32 = 2 ** 31 - 1;

interface FieldsProps {
  readonly position: number;
  readonly errorOf: (field: string) => string | undefined;
  readonly onRemove: () => void;
}

interface RateLimitProps extends FieldsProps {
  readonly limit: RateLimit;
  readonly onChange: (changed: Partial<RateLimit>) => void;
}

/** The fields of a rate limit, in the part of a form that edits limits. */
export function RateLimitFields({ position, limit, errorOf, onChange, onRemove }: RateLimitProps) {
  const t = useTexts(limits);
  const { name, quota, window, burst, enforcement, onDemand } = limit;
  return (
    <Fieldset legend={t.rateLimit(position)}>
      <Group align="start" gap="xs">
        <TextInput
          label={t.name}
          placeholder={t.namePlaceholder}
          value={name}
          error={errorOf("name")}
          flex="2 1 8rem"
          onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
        />
        <Count label={t.perWindow} value={quota} error={errorOf("quota")} onChange={(n) => onChange({ quota: n })} />
        <TextInput
          label={t.window}
          placeholder={t.windowPlaceholder}
          value={window}
          error={errorOf("window")}
          flex="1 1 6rem"
          onChange={({ currentTarget }) => onChange({ window: currentTarget.value })}
        />
        <Count
          label={t.burst}
          placeholder={t.burstPlaceholder}
          value={burst ?? 0}
          error={errorOf("burst")}
          onChange={(n) => onChange({ burst: n || undefined })}
        />
      </Group>
      <Group mt="xs" gap="md">
        <Checkbox
          label={t.shadow}
          checked={enforcement === RateLimitEnforcement.SHADOW}
          onChange={({ currentTarget: { checked } }) =>
            onChange({ enforcement: RateLimitEnforcement[checked ? "SHADOW" : "ENFORCED"] })
          }
        />
        <Checkbox
          label={t.onDemand}
          checked={onDemand}
          onChange={({ currentTarget }) => onChange({ onDemand: currentTarget.checked })}
        />
        <Remove label={t.removeRateLimit(position)} onClick={onRemove} />
      </Group>
    </Fieldset>
  );
}

interface QuotaProps extends FieldsProps {
  readonly quota: Quota;
  readonly onChange: (changed: Partial<Quota>) => void;
}

export function QuotaFields({ position, quota: { name, limit, period }, errorOf, onChange, onRemove }: QuotaProps) {
  const t = useTexts(limits);
  return (
    <Fieldset legend={t.quota(position)}>
      <Group align="start" gap="xs">
        <TextInput
          label={t.name}
          placeholder={t.quotaPlaceholder}
          value={name}
          error={errorOf("name")}
          flex="2 1 8rem"
          onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
        />
        <Count label={t.limit} value={limit} error={errorOf("limit")} onChange={(n) => onChange({ limit: n })} />
        <NativeSelect
          label={t.period}
          value={period}
          error={errorOf("period")}
          flex="1 1 6rem"
          data={Object.entries(t.periods).map(([value, label]) => ({ value, label }))}
          onChange={({ currentTarget }) => onChange({ period: Number(currentTarget.value) })}
        />
      </Group>
      <Group mt="xs">
        <Remove label={t.removeQuota(position)} onClick={onRemove} />
      </Group>
    </Fieldset>
  );
}

interface CountProps {
  readonly label: string;
  readonly placeholder?: string;
  /** 0 is shown as empty. */
  readonly value: number;
  readonly error: string | undefined;
  readonly onChange: (value: number) => void;
}

function Count({ value, onChange, ...props }: CountProps) {
  return (
    <TextInput
      {...props}
      type="number"
      min={1}
      max={MAX_INT32}
      value={value || ""}
      flex="1 1 8rem"
      onChange={({ currentTarget }) => onChange(Math.trunc(Number(currentTarget.value)))}
    />
  );
}

function Remove({ label, onClick }: { readonly label: string; readonly onClick: () => void }) {
  const t = useTexts(limits);
  return (
    <Button size="compact-sm" variant="subtle" ml="auto" aria-label={label} onClick={onClick}>
      {t.remove}
    </Button>
  );
}
