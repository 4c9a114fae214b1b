import { useQuery } from "@connectrpc/connect-query";
import { Group } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { type AuditEvent, AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { AuditChanges } from "../parts/audit/audit-changes.tsx";
import { EventAction, EventCaller, KeyLink } from "../parts/audit/audit-event-cells.tsx";
import { useEventVerification } from "../parts/audit/audit-verification.ts";
import { type Check, CheckList } from "../parts/audit/check-list.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { Fact, Facts } from "../parts/facts.tsx";
import { quoted } from "../parts/filter-text.ts";
import { LinkAnchor } from "../parts/links.tsx";
import { Page } from "../parts/page.tsx";
import { PageNotFound } from "../parts/page-failed.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { Section } from "../parts/section.tsx";
import { Time } from "../parts/time.tsx";
import { useCan } from "../session/permissions.ts";
import { audit } from "../texts/audit.ts";
import { key } from "../texts/key.ts";
import { useTexts } from "../texts/language.tsx";

const { getAuditEvent, getAuditCheckpoint, getAuditProof, listAuditEvents } = AuditService.method;

const route = getRouteApi("/audit/$seq");

/** Shows an event, and verifies that the log has it. */
export function AuditEventPage() {
  const { seq } = route.useParams();
  return /^\d{1,15}$/.test(seq) ? <EventPage seq={BigInt(seq)} /> : <PageNotFound />;
}

function EventPage({ seq }: { readonly seq: bigint }) {
  const t = useTexts(audit);
  const can = useCan();
  const { data: event, error, refetch } = useQuery(getAuditEvent, { seq });
  return (
    <Page title={t.event(String(seq))}>
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {event === undefined ? (
        error === null && <PageLoader />
      ) : (
        <>
          <EventFacts event={event} />
          {can(listAuditEvents) && <Related event={event} />}
          <Section title={t.changes}>
            <AuditChanges changes={event.changes} />
          </Section>
          {can(getAuditCheckpoint, getAuditProof) && (
            <Section title={t.verification}>
              <Verification event={event} />
            </Section>
          )}
        </>
      )}
    </Page>
  );
}

function EventFacts({ event }: { readonly event: AuditEvent }) {
  const t = useTexts(audit);
  const names = useTexts(key);
  const { time, keyId, caller } = event;
  return (
    <Facts>
      <Fact name={t.time}>{time && <Time date={time} withSeconds />}</Fact>
      <Fact name={t.action}>
        <EventAction event={event} />
      </Fact>
      <Fact name={names.key}>{keyId && <KeyLink keyId={keyId} isWhole />}</Fact>
      <Fact name={names.actor}>{event.actorId}</Fact>
      <Fact name={t.resource}>{event.resourceId}</Fact>
      <Fact name={t.caller}>{caller && <EventCaller event={event} isWhole />}</Fact>
      <Fact name={t.method}>{caller?.method}</Fact>
      <Fact name={t.issuer}>{caller?.issuer}</Fact>
      <Fact name={t.clientIp}>{event.clientIp}</Fact>
      <Fact name={t.peerIp}>{event.peerIp}</Fact>
      <Fact name={t.userAgent}>{event.userAgent}</Fact>
      <Fact name={t.rpc}>{event.rpc}</Fact>
      <Fact name={t.callId}>{event.callId}</Fact>
      <Fact name={t.requestId}>{event.requestId}</Fact>
      <Fact name={t.node}>{event.node}</Fact>
      <Fact name={t.reason}>{event.reason}</Fact>
    </Facts>
  );
}

/** Links to what else the log has about the key, the caller and the address. */
function Related({ event: { keyId, caller, clientIp } }: { readonly event: AuditEvent }) {
  const t = useTexts(audit);
  const links = [
    [t.ofKey, "key_id", keyId],
    [t.ofCaller, "caller", caller?.name ?? ""],
    [t.fromAddress, "client_ip", clientIp],
  ].filter(([, , value]) => value !== "");
  if (links.length === 0) return null;
  return (
    <Group component="nav" gap="sm" aria-label={t.related}>
      {`${t.related}:`}
      {links.map(([text, field, value = ""]) => (
        <LinkAnchor key={field} to="/audit" search={{ filter: [`${field}=${quoted(value)}`] }}>
          {text}
        </LinkAnchor>
      ))}
    </Group>
  );
}

function Verification({ event }: { readonly event: AuditEvent }) {
  const t = useTexts(audit);
  const { data, error, refetch } = useEventVerification(event);
  if (error !== null) return <ErrorAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <PageLoader />;
  const { head, inclusion, signature } = data;
  const checks: readonly Check[] = [
    { outcome: inclusion, text: t.inclusion[inclusion](t.events(head.size)) },
    { outcome: signature, text: t.signature[signature] },
  ];
  return <CheckList label={t.verification} checks={checks} />;
}
