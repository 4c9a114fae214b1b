import { Code } from "@mantine/core";
import type { ApiKey } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { common } from "../../texts/common.ts";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";
import { Fact, Facts } from "../facts.tsx";
import { ActorLink } from "../links.tsx";
import { tags } from "../tags.tsx";
import { Time } from "../time.tsx";

/** What the server knows of a key. */
export function KeyFacts({ apiKey }: { readonly apiKey: ApiKey }) {
  const t = useTexts(key);
  const { never } = useTexts(common);
  const { metadata, rateLimits, quotas, expireTime, lastUsedTime, revocationReason } = apiKey;
  const time = (date: ApiKey["expireTime"]) => date && <Time date={date} />;
  return (
    <Facts>
      <Fact name={t.keyId}>
        <Code>{apiKey.keyId}</Code>
      </Fact>
      <Fact name={t.hint}>{apiKey.hint}</Fact>
      <Fact name={t.kind}>{t.kinds[apiKey.kind]}</Fact>
      <Fact name={t.actor}>
        <ActorLink actorId={apiKey.actorId} />
      </Fact>
      <Fact name={t.scopes}>{tags(apiKey.scopes)}</Fact>
      <Fact name={t.metadata}>{tags(Object.entries(metadata).map(([name, value]) => `${name}=${value}`))}</Fact>
      <Fact name={t.acceptedFrom}>{tags(apiKey.ipRestriction?.allowedCidrs ?? [])}</Fact>
      <Fact name={t.restrictedTo}>{tags(apiKey.restrictedToActorIds)}</Fact>
      <Fact name={t.rateLimits}>
        {tags(rateLimits.map(({ name, quota, window }) => `${name}: ${t.rate(quota, window)}`))}
      </Fact>
      <Fact name={t.quotas}>
        {tags(quotas.map(({ name, limit, period }) => `${name}: ${t.quota(limit, t.periods[period])}`))}
      </Fact>
      <Fact name={t.created}>{time(apiKey.createTime)}</Fact>
      <Fact name={t.createdBy}>{apiKey.createdBy}</Fact>
      <Fact name={t.updated}>{time(apiKey.updateTime)}</Fact>
      <Fact name={t.rotated}>{time(apiKey.rotateTime)}</Fact>
      <Fact name={t.expires}>{time(expireTime) ?? never}</Fact>
      <Fact name={t.lastUsed}>{time(lastUsedTime) ?? never}</Fact>
      <Fact name={t.lastUsedFrom}>{apiKey.lastUsedAddress}</Fact>
      <Fact name={t.disabled}>{time(apiKey.disableTime)}</Fact>
      <Fact name={t.disabledBy}>{apiKey.disabledBy}</Fact>
      <Fact name={t.disableReason}>{apiKey.disableReason}</Fact>
      <Fact name={t.revoked}>{time(apiKey.revokeTime)}</Fact>
      <Fact name={t.revokedBy}>{apiKey.revokedBy}</Fact>
      <Fact name={t.reason}>{revocationReason !== undefined && t.reasons[revocationReason]}</Fact>
      <Fact name={t.description}>{apiKey.revocationDescription}</Fact>
    </Facts>
  );
}
