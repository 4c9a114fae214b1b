import { Button, Modal, SegmentedControl, Stack, Text, useMantineColorScheme } from "@mantine/core";
import { AuthMethod } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { useCaller } from "../session/permissions.ts";
import { signOut } from "../session/sign-in.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { session } from "../texts/session.ts";
import { LanguageSelect } from "./language-select.tsx";
import { Time } from "./time.tsx";

const SCHEMES = ["light", "dark", "auto"] as const;

/** Who uses the console, its language and its colors, and the way out. */
export function SessionDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useTexts(session);
  const { close } = useTexts(common);
  const { subject, authMethod, expireTime, actorRestricted, restrictedToActorIds } = useCaller();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const hasSession = authMethod !== AuthMethod.NONE;
  return (
    <Modal opened onClose={onClose} title={t.menu} size="sm" closeButtonProps={{ "aria-label": close }}>
      <Stack>
        <Text size="sm" className="breakable">
          {hasSession ? subject : t.anonymous}
        </Text>
        {expireTime !== undefined && (
          <Text size="sm">
            {t.expires}: <Time date={expireTime} />
          </Text>
        )}
        {actorRestricted && <Text size="sm">{`${t.restricted}: ${restrictedToActorIds.join(", ")}`}</Text>}
        <LanguageSelect label={t.language} />
        <SegmentedControl
          aria-label={t.colorScheme}
          data={SCHEMES.map((value) => ({ value, label: t.schemes[value] }))}
          value={colorScheme}
          onChange={(value) => setColorScheme(value as (typeof SCHEMES)[number])}
        />
        {hasSession && (
          <Button variant="default" onClick={() => void signOut()}>
            {t.signOut}
          </Button>
        )}
      </Stack>
    </Modal>
  );
}
