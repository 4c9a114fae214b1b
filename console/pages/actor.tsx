import { useQuery } from "@connectrpc/connect-query";
import { Text, Title } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { ActorLimits } from "../parts/actors/actor-limits.tsx";
import { ActorUsage } from "../parts/actors/actor-usage.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { quoted } from "../parts/filter-text.ts";
import { NO_LIMITS } from "../parts/limits-editor.tsx";
import { LinkButton } from "../parts/links.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { useCan } from "../session/permissions.ts";
import { actors } from "../texts/actors.ts";
import { useTexts } from "../texts/language.tsx";

const route = getRouteApi("/actors/$actorId");

/** Shows the limits of an actor, which may have none yet, and the usage of its keys. */
export function ActorPage() {
  const t = useTexts(actors);
  const can = useCan();
  const { actorId } = route.useParams();
  const filter = `actor_id=${quoted(actorId)}`;
  // GetActor has an error for an actor without limits, which is nothing unusual here.
  const { data, error, refetch } = useQuery(ActorsService.method.listActors, { filter });
  const actor = data?.actors[0];
  return (
    <Page
      title={actorId}
      actions={
        can(ApiKeysService.method.listApiKeys) && (
          <LinkButton variant="default" to="/keys" search={{ filter: [filter] }}>
            {t.keys}
          </LinkButton>
        )
      }
    >
      <Title order={2} size="h4">
        {t.limits}
      </Title>
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {data !== undefined && (
        <>
          {actor === undefined && <Text c="dimmed">{t.noLimits}</Text>}
          <ActorLimits key={actorId} actorId={actorId} current={actor ?? NO_LIMITS} isStored={actor !== undefined} />
        </>
      )}
      {data === undefined && error === null && <PageLoader />}
      {can(UsageService.method.queryUsage) && (
        <>
          <Title order={2} size="h4">
            {t.usage}
          </Title>
          <ActorUsage actorId={actorId} />
        </>
      )}
    </Page>
  );
}
