import { useQuery } from "@connectrpc/connect-query";
import { getRouteApi } from "@tanstack/react-router";
import type { ApiKey } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { AuditEvents } from "../parts/audit/audit-events.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { ExplainedKey } from "../parts/keys/explained-key.tsx";
import { KeyActions } from "../parts/keys/key-actions.tsx";
import { KeyFacts } from "../parts/keys/key-facts.tsx";
import { PreviousSecrets } from "../parts/keys/previous-secrets.tsx";
import { StatusBadge } from "../parts/keys/status-badge.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { Section } from "../parts/section.tsx";
import { KeyUsage } from "../parts/usage/key-usage.tsx";
import { UsageLink } from "../parts/usage/usage-link.tsx";
import { useCan } from "../session/permissions.ts";
import { keyPage } from "../texts/key-page.ts";
import { useTexts } from "../texts/language.tsx";

const route = getRouteApi("/keys/$keyId");

/** Milliseconds between two reads while an old secret is accepted: people wait until nobody uses it. */
const IDLE_WATCH = 5_000;

/** A key: what it is, whether it would be accepted and why, its actions, and what has happened to it. */
export function KeyPage() {
  const { keyId } = route.useParams();
  const { data, error, refetch } = useQuery(
    ApiKeysService.method.getApiKey,
    { keyId },
    { refetchInterval: ({ state }) => (state.data?.previousSecrets.length ? IDLE_WATCH : false) },
  );
  if (data !== undefined) return <LoadedKey apiKey={data} error={error} />;
  if (error === null) return <PageLoader />;
  return (
    <Page title={keyId}>
      <ErrorAlert error={error} onRetry={() => void refetch()} />
    </Page>
  );
}

/** `error`: why the key could not be read again. */
function LoadedKey({ apiKey, error }: { readonly apiKey: ApiKey; readonly error: Error | null }) {
  const t = useTexts(keyPage);
  const can = useCan();
  return (
    <Page title={apiKey.name} actions={<KeyActions apiKey={apiKey} />}>
      <ErrorAlert error={error} />
      <Section title={t.state} aside={<StatusBadge status={apiKey.status} />}>
        <ExplainedKey apiKey={apiKey} />
        <KeyFacts apiKey={apiKey} />
      </Section>
      {apiKey.previousSecrets.length > 0 && (
        <Section title={t.previous}>
          <PreviousSecrets apiKey={apiKey} />
        </Section>
      )}
      {can(UsageService.method.getKeyUsage) && (
        <Section title={t.usage}>
          <KeyUsage
            keyId={apiKey.keyId}
            more={can(UsageService.method.queryUsage) && <UsageLink keyId={apiKey.keyId} />}
          />
        </Section>
      )}
      {can(AuditService.method.listAuditEvents) && <AuditEvents title={t.changes} keyId={apiKey.keyId} />}
    </Page>
  );
}
