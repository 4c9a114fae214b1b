import { Text } from "@mantine/core";
import { useEffect } from "react";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { reportEnded } from "./embed.ts";
import { forgetSession } from "./link.ts";
import { MessagePage } from "./message-page.tsx";
import { ReturnLink } from "./return-link.tsx";

/** Why there is no session: the link was rejected, the session has ended, there was none, or the browser has stored no cookie. */
export type EndReason = "rejected" | "ended" | "none" | "notStored";

interface Props {
  readonly reason: EndReason;
  readonly returnUrl?: string | undefined;
}

/** Says that a new link is needed. */
export function EndedPage({ reason, returnUrl }: Props) {
  const t = useTexts(ownerPage);
  const details = { rejected: t.rejectedDetail, ended: t.again, none: t.again, notStored: t.notStoredDetail };
  useEffect(() => {
    reportEnded();
    forgetSession();
  }, []);
  return (
    <MessagePage title={t[reason]}>
      <Text role="status">{details[reason]}</Text>
      <ReturnLink url={returnUrl} />
    </MessagePage>
  );
}
