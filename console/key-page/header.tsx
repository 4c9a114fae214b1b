import { Box, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { LanguageSelect } from "../parts/language-select.tsx";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { session } from "../texts/session.ts";
import { Brand } from "./brand.tsx";
import { isEmbedded } from "./embed.ts";
import { endSession } from "./link.ts";
import { useKeyPageSession } from "./owner.ts";
import { ReturnLink } from "./return-link.tsx";

/** Whose keys these are, the way back and the language. In a frame, the page around it is the way out. */
export function Header() {
  const t = useTexts(session);
  const { keysOf } = useTexts(ownerPage);
  const { actorId, returnUrl } = useKeyPageSession();
  const ending = useMutation({ mutationFn: endSession });
  return (
    <Box component="header" px="md" py="sm" style={{ borderBottom: "1px solid var(--mantine-color-default-border)" }}>
      <Stack gap="xs" maw="64rem" mx="auto">
        <Group justify="space-between">
          <Stack gap={0}>
            <Brand />
            <Text size="sm" c="dimmed" className="breakable">
              {keysOf(actorId)}
            </Text>
          </Stack>
          <Group gap="sm">
            <ReturnLink url={returnUrl} />
            <LanguageSelect size="xs" aria-label={t.language} />
            {!isEmbedded && (
              <Button size="xs" variant="default" loading={ending.isPending} onClick={() => ending.mutate()}>
                {t.signOut}
              </Button>
            )}
          </Group>
        </Group>
        <ErrorAlert error={ending.error} />
      </Stack>
    </Box>
  );
}
