import { Fragment } from "react";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type AuditEvent, AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { useCan } from "../../session/permissions.ts";
import { audit } from "../../texts/audit.ts";
import { useTexts } from "../../texts/language.tsx";
import type { Column } from "../data-table.tsx";
import { LinkAnchor } from "../links.tsx";
import { Time } from "../time.tsx";

type Props = { readonly event: AuditEvent };

/** Returns the columns of a list of events: of one key, or of all. */
export function useEventColumns({ isOfKey = false } = {}): readonly Column<AuditEvent>[] {
  const t = useTexts(audit);
  const subject = { header: t.subject, cell: (event: AuditEvent) => <EventSubject event={event} />, isSecondary: true };
  return [
    { header: t.time, cell: (event) => <EventTime event={event} /> },
    {
      header: t.action,
      cell: (event) => (
        <>
          <EventAction event={event} />
          <div className="mantine-hidden-from-md">
            <EventCaller event={event} />
          </div>
        </>
      ),
    },
    { header: t.caller, cell: (event) => <EventCaller event={event} />, isSecondary: true },
    ...(isOfKey ? [] : [subject]),
    { header: t.clientIp, cell: ({ clientIp }) => clientIp, isSecondary: true },
    { header: t.reason, cell: ({ reason }) => reason, isSecondary: true },
  ];
}

/** When it happened, which leads to the event. */
function EventTime({ event: { seq, time } }: Props) {
  const can = useCan();
  const shown = time === undefined ? String(seq) : <Time date={time} withSeconds />;
  if (!can(AuditService.method.getAuditEvent)) return shown;
  return (
    <LinkAnchor to="/audit/$seq" params={{ seq: String(seq) }} className="on-one-line">
      {shown}
    </LinkAnchor>
  );
}

export function EventAction({ event: { action } }: Props) {
  return (
    <span className={action.endsWith(".denied") ? "monospace error" : "monospace"}>
      <Short text={action} />
    </span>
  );
}

/** Who made the call. An administrator's token leads to its key. */
export function EventCaller({ event: { caller }, isWhole = false }: Props & { readonly isWhole?: boolean }) {
  if (caller === undefined) return null;
  const { keyId, name } = caller;
  if (keyId !== "") return <KeyLink keyId={keyId} text={name} isWhole={isWhole} />;
  return isWhole ? name : <Short text={name} />;
}

/** What the event is about: a key, or else an actor or another resource. */
function EventSubject({ event: { keyId, actorId, resourceId } }: Props) {
  return keyId === "" ? <Short text={resourceId || actorId} /> : <KeyLink keyId={keyId} />;
}

interface KeyLinkProps {
  readonly keyId: string;
  readonly text?: string;
  readonly isWhole?: boolean;
}

export function KeyLink({ keyId, text = keyId, isWhole = false }: KeyLinkProps) {
  const can = useCan();
  const shown = isWhole ? text : <Short text={text} />;
  if (!can(ApiKeysService.method.getApiKey)) return shown;
  return (
    <LinkAnchor to="/keys/$keyId" params={{ keyId }}>
      {shown}
    </LinkAnchor>
  );
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-([0-9a-f]{12})/g;

/** Shows the last digits of identifiers, which are random; the first are a time. The title has all. Lines break between words. */
function Short({ text }: { readonly text: string }) {
  const words = text.replace(UUID, "…$1").split(/(?<=[._:])/);
  return (
    <span title={text} className="short">
      {words.map((word, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the words of a text have no other identity
        <Fragment key={place}>
          {word}
          <wbr />
        </Fragment>
      ))}
    </span>
  );
}
