import { Button, Group, Modal, Stack } from "@mantine/core";
import { AuthMethod } from "../../../gen/keyhold/v2alpha1/callers_pb.js";
import { useCaller } from "../../session/permissions.ts";
import { keyForm } from "../../texts/key-form.ts";
import { useTexts } from "../../texts/language.tsx";
import { SecretOnce } from "../secret-once.tsx";
import { VerifySnippets } from "./verify-snippets.tsx";

interface Props {
  readonly title: string;
  readonly secret: string;
  readonly onClose: () => void;
}

/** Shows the secret of a key that was created or rotated. A click beside it does not close it. */
export function NewSecretDialog({ title, secret, onClose }: Props) {
  const t = useTexts(keyForm);
  // The owner of a key uses it; only those who serve owners verify it.
  const isOwner = useCaller().authMethod === AuthMethod.KEY_PAGE;
  return (
    <Modal opened onClose={onClose} title={title} size="lg" closeOnClickOutside={false} withCloseButton={false}>
      <Stack>
        <SecretOnce title={t.secretOnce} secret={secret} />
        {!isOwner && <VerifySnippets secret={secret} />}
        <Group justify="end">
          <Button onClick={onClose}>{t.done}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
