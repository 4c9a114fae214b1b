import { Paper, Stack, Text, Title } from "@mantine/core";
import { useEffect } from "react";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { Brand, useBrandTitle } from "./brand.tsx";
import { reportEnded } from "./embed.ts";
import { forgetSession } from "./link.ts";
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
  useBrandTitle(t[reason]);
  useEffect(() => {
    reportEnded();
    forgetSession();
  }, []);
  return (
    <Paper component="main" withBorder p="xl" mx="auto" my="xl" w="calc(100% - 2rem)" maw="32rem">
      <Stack>
        <Brand />
        <div role="status">
          <Title order={1} size="h3" mb="xs">
            {t[reason]}
          </Title>
          <Text>{details[reason]}</Text>
        </div>
        <ReturnLink url={returnUrl} />
      </Stack>
    </Paper>
  );
}
