import { Alert, List, Text } from "@mantine/core";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { useNavigation } from "../navigation.ts";
import { AuditEvents } from "../parts/audit/audit-events.tsx";
import { LinkAnchor } from "../parts/links.tsx";
import { Page } from "../parts/page.tsx";
import { Section } from "../parts/section.tsx";
import { ExpiringKeys } from "../parts/usage/expiring-keys.tsx";
import { RecentVerifications } from "../parts/usage/recent-verifications.tsx";
import { useCan } from "../session/permissions.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { overview } from "../texts/overview.ts";

const { queryUsage } = UsageService.method;
const { listApiKeys } = ApiKeysService.method;
const { listAuditEvents } = AuditService.method;

/** What needs attention, as far as the caller may see it. */
export function OverviewPage() {
  const t = useTexts(overview);
  const { pages } = useTexts(common);
  const can = useCan();
  return (
    <Page title={pages.overview}>
      {can(queryUsage) && (
        <Section title={t.verifications}>
          <RecentVerifications />
        </Section>
      )}
      {can(listApiKeys) && (
        <Section title={t.expiring}>
          <ExpiringKeys />
        </Section>
      )}
      {can(listAuditEvents) && <AuditEvents title={t.changes} />}
      {[queryUsage, listApiKeys, listAuditEvents].every((method) => !can(method)) && <OtherPages />}
    </Page>
  );
}

/** For callers that may see nothing of the overview. */
function OtherPages() {
  const t = useTexts(overview);
  const { pages } = useTexts(common);
  const permitted = useNavigation().filter(({ to }) => to !== "/");
  if (permitted.length === 0) return <Alert title={t.nothingAtAll} />;
  return (
    <>
      <Text>{t.nothing}</Text>
      <List>
        {permitted.map(({ to, name }) => (
          <List.Item key={to}>
            <LinkAnchor to={to}>{pages[name]}</LinkAnchor>
          </List.Item>
        ))}
      </List>
    </>
  );
}
