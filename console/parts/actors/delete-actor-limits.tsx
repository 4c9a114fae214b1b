import { useMutation } from "@connectrpc/connect-query";
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { ActorsService } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import { actors } from "../../texts/actors.ts";
import { common } from "../../texts/common.ts";
import { useTexts } from "../../texts/language.tsx";
import { ErrorAlert } from "../error-alert.tsx";

interface Props {
  readonly actorId: string;
  readonly onDone: () => Promise<void>;
}

export function DeleteActorLimits({ actorId, onDone }: Props) {
  const t = useTexts(actors);
  const { cancel, close: closeLabel } = useTexts(common);
  const [isOpen, { open, close }] = useDisclosure(false);
  const { mutate, error, isPending, reset } = useMutation(ActorsService.method.deleteActor, {
    onSuccess: async () => {
      close();
      await onDone();
    },
  });
  return (
    <>
      <Button size="xs" variant="outline" color="red" onClick={open}>
        {t.deleteAll}
      </Button>
      <Modal
        opened={isOpen}
        onClose={close}
        onExitTransitionEnd={reset}
        title={t.deleteTitle}
        closeButtonProps={{ "aria-label": closeLabel }}
      >
        <Stack>
          <Text size="sm">{t.deleteDetail(actorId)}</Text>
          <ErrorAlert error={error} />
          <Group justify="end" gap="xs">
            <Button variant="default" onClick={close}>
              {cancel}
            </Button>
            <Button color="red" loading={isPending} onClick={() => mutate({ actorId })}>
              {t.deleteConfirm}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
