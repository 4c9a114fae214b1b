import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { AuthMethod } from "../../../gen/keyhold/v2alpha1/callers_pb.js";
import { useCaller } from "../../session/permissions.ts";
import { keyForm } from "../../texts/key-form.ts";
import { useTexts } from "../../texts/language.tsx";
import { CopyableCode, SecretOnce } from "../secret-once.tsx";
import { verifierProgram, verifyCommand } from "./snippets.ts";

interface Props {
  readonly title: string;
  readonly secret: string;
  readonly onClose: () => void;
}

/** Shows the secret of a key that was created or rotated, and how to use it. A click beside it does not close it. */
export function NewSecretDialog({ title, secret, onClose }: Props) {
  const t = useTexts(keyForm);
  const needsToken = useCaller().authMethod !== AuthMethod.NONE;
  return (
    <Modal opened onClose={onClose} title={title} size="lg" closeOnClickOutside={false} withCloseButton={false}>
      <Stack>
        <SecretOnce title={t.secretOnce} secret={secret} />
        <Text fw={600}>{t.tryIt}</Text>
        <CopyableCode label={t.tryIt} text={verifyCommand(secret, needsToken)} />
        <Text fw={600}>{t.client}</Text>
        <CopyableCode label={t.client} text={verifierProgram(needsToken)} />
        {needsToken && <Text size="sm">{t.tokenHint}</Text>}
        <Group justify="end">
          <Button onClick={onClose}>{t.done}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
