import { useQuery } from "@connectrpc/connect-query";
import { Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useEffect, useId } from "react";
import { type ApiKey, KeyStatus } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { Fact, Facts } from "../parts/facts.tsx";
import { PreviousSecrets } from "../parts/keys/previous-secrets.tsx";
import { StatusBadge } from "../parts/keys/status-badge.tsx";
import { tags } from "../parts/tags.tsx";
import { Time } from "../parts/time.tsx";
import { useRefresh } from "../session/refresh.ts";
import { common } from "../texts/common.ts";
import { key } from "../texts/key.ts";
import { keyPage } from "../texts/key-page.ts";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { KeyButtons } from "./key-buttons.tsx";
import { KeyUsagePanel } from "./key-usage-panel.tsx";

const { getApiKey, listApiKeys } = ApiKeysService.method;

const WHY = {
  [KeyStatus.REVOKED]: "revoked",
  [KeyStatus.EXPIRED]: "expired",
  [KeyStatus.DISABLED]: "disabled",
} as const;

/** A key of the owner: what it is, whether it is accepted, and what can be done with it. */
export function KeyCard({ apiKey }: { readonly apiKey: ApiKey }) {
  const t = useTexts(ownerPage);
  const id = useId();
  const { keyId, name, status } = apiKey;
  const why = WHY[status as keyof typeof WHY];
  return (
    <Paper component="article" className="key-card" withBorder p="md" aria-labelledby={id}>
      <Stack gap="sm">
        <Group gap="xs" justify="space-between">
          <Title order={2} size="h4" id={id} className="breakable">
            {name}
          </Title>
          <StatusBadge status={status} />
        </Group>
        {why !== undefined && <Text size="sm">{t.why[why]}</Text>}
        <OwnedKeyFacts apiKey={apiKey} />
        {apiKey.previousSecrets.length > 0 && <OldSecrets apiKey={apiKey} />}
        <KeyUsagePanel keyId={keyId} name={name}>
          <KeyButtons apiKey={apiKey} />
        </KeyUsagePanel>
      </Stack>
    </Paper>
  );
}

/** What an owner needs to know of a key. */
function OwnedKeyFacts({ apiKey }: { readonly apiKey: ApiKey }) {
  const t = useTexts(key);
  const { never } = useTexts(common);
  const { expireTime, lastUsedTime, revocationReason } = apiKey;
  const time = (date: ApiKey["expireTime"]) => date && <Time date={date} />;
  return (
    <Facts>
      <Fact name={t.hint}>{apiKey.hint}</Fact>
      <Fact name={t.scopes}>{tags(apiKey.scopes)}</Fact>
      <Fact name={t.acceptedFrom}>{tags(apiKey.ipRestriction?.allowedCidrs ?? [])}</Fact>
      <Fact name={t.created}>{time(apiKey.createTime)}</Fact>
      <Fact name={t.expires}>{time(expireTime) ?? never}</Fact>
      <Fact name={t.lastUsed}>{time(lastUsedTime) ?? never}</Fact>
      <Fact name={t.lastUsedFrom}>{apiKey.lastUsedAddress}</Fact>
      <Fact name={t.disabled}>{time(apiKey.disableTime)}</Fact>
      <Fact name={t.disableReason}>{apiKey.disableReason}</Fact>
      <Fact name={t.revoked}>{time(apiKey.revokeTime)}</Fact>
      <Fact name={t.reason}>{revocationReason !== undefined && t.reasons[revocationReason]}</Fact>
      <Fact name={t.description}>{apiKey.revocationDescription}</Fact>
    </Facts>
  );
}

/** Milliseconds between two reads while an old secret is accepted: owners wait until nobody uses it. */
const IDLE_WATCH = 5_000;

/** The secrets that are still accepted, until their grace periods end. */
function OldSecrets({ apiKey }: { readonly apiKey: ApiKey }) {
  const t = useTexts(keyPage);
  const { keyId } = apiKey;
  const { data = apiKey } = useQuery(getApiKey, { keyId }, { refetchInterval: IDLE_WATCH });
  const isOver = data.previousSecrets.length === 0;
  const refresh = useRefresh();
  // The list still has the key as it was in its grace period.
  useEffect(() => {
    if (isOver) refresh(listApiKeys);
  }, [isOver, refresh]);
  if (isOver) return null;
  return (
    <Stack gap={4}>
      <Text fw={600} size="sm">
        {t.previous}
      </Text>
      <PreviousSecrets apiKey={data} />
    </Stack>
  );
}
