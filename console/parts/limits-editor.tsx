import { create } from "@bufbuild/protobuf";
import { Button, Group, Stack } from "@mantine/core";
import {
  type Quota,
  QuotaPeriod,
  QuotaSchema,
  type RateLimit,
  RateLimitSchema,
} from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { useTexts } from "../texts/language.tsx";
import { limits } from "../texts/limits.ts";
import { violationsOf } from "./error-alert.tsx";
import { QuotaFields, RateLimitFields } from "./limit-fields.tsx";

/**
 * The limits of a key or an actor, as the messages have them: spread it into a request. What the form does not show, such as the anchor of a
 * quota, stays as it was. A number that is not filled in is 0, which the server rejects.
 */
export interface Limits {
  readonly rateLimits: RateLimit[];
  readonly quotas: Quota[];
}

export const NO_LIMITS: Limits = { rateLimits: [], quotas: [] };

/** Returns the limits of a key or an actor as people write them: `24h` for `86400s`, and no burst where it is the default. */
export function limitsOf({ rateLimits, quotas }: Limits): Limits {
  return {
    rateLimits: rateLimits.map(({ burst, window, ...limit }) => ({
      ...{ ...limit, window: shortWindow(window) },
      ...(burst !== undefined && burst !== limit.quota && { burst }),
    })),
    quotas,
  };
}

function shortWindow(window: string): string {
  const seconds = Number(/^(\d+)s$/.exec(window)?.[1]);
  if (seconds % 3600 === 0) return `${seconds / 3600}h`;
  return seconds % 60 === 0 ? `${seconds / 60}m` : window;
}

interface Props {
  readonly value: Limits;
  readonly onChange: (value: Limits) => void;
  /** Why the server has rejected the value: shown at the fields that it names. */
  readonly error?: Error | null;
}

/** What the server accepts of each. */
const MAX_LIMITS = 8;

/** The part of a form in which rate limits and quotas are edited. */
export function LimitsEditor({ value, onChange, error = null }: Props) {
  const t = useTexts(limits);
  const { rateLimits, quotas } = value;
  const setRateLimits = (changed: RateLimit[]) => onChange({ rateLimits: changed, quotas });
  const setQuotas = (changed: Quota[]) => onChange({ rateLimits, quotas: changed });
  const violations = violationsOf(error);
  const errorsOf = (list: string, index: number) => (field: string) =>
    violations.find((one) => one.field.endsWith(`${list}[${index}].${field}`))?.description;
  return (
    <Stack gap="sm">
      {rateLimits.map((limit, index) => (
        <RateLimitFields
          // biome-ignore lint/suspicious/noArrayIndexKey: the fields have no state of their own
          key={index}
          position={index + 1}
          limit={limit}
          errorOf={errorsOf("rate_limits", index)}
          onChange={(changed) => setRateLimits(rateLimits.with(index, { ...limit, ...changed }))}
          onRemove={() => setRateLimits(rateLimits.toSpliced(index, 1))}
        />
      ))}
      {quotas.map((quota, index) => (
        <QuotaFields
          // biome-ignore lint/suspicious/noArrayIndexKey: the fields have no state of their own
          key={index}
          position={index + 1}
          quota={quota}
          errorOf={errorsOf("quotas", index)}
          onChange={(changed) => setQuotas(quotas.with(index, { ...quota, ...changed }))}
          onRemove={() => setQuotas(quotas.toSpliced(index, 1))}
        />
      ))}
      <Group gap="xs">
        <Button
          size="xs"
          variant="default"
          disabled={rateLimits.length >= MAX_LIMITS}
          onClick={() => setRateLimits([...rateLimits, create(RateLimitSchema)])}
        >
          {t.addRateLimit}
        </Button>
        <Button
          size="xs"
          variant="default"
          disabled={quotas.length >= MAX_LIMITS}
          onClick={() => setQuotas([...quotas, create(QuotaSchema, { period: QuotaPeriod.MONTH })])}
        >
          {t.addQuota}
        </Button>
      </Group>
    </Stack>
  );
}
