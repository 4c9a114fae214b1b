import { useMutation } from "@connectrpc/connect-query";
import { Button, Group, Modal, NativeSelect, NumberInput, SegmentedControl, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, useState } from "react";
import { ActorsService } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import { actors } from "../../texts/actors.ts";
import { common } from "../../texts/common.ts";
import { useTexts } from "../../texts/language.tsx";
import { ErrorAlert } from "../error-alert.tsx";

interface Props {
  readonly actorId: string;
  /** The names of its quotas. */
  readonly names: readonly string[];
  readonly onDone: (name: string) => Promise<void>;
}

const MAX_INT32 = 2 ** 31 - 1;

/** Charges a quota, or gives back what was charged, in its current period. */
export function AdjustActorQuota({ actorId, names, onDone }: Props) {
  const t = useTexts(actors);
  const { close: closeLabel } = useTexts(common);
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button size="xs" variant="default" onClick={open}>
        {t.adjust}
      </Button>
      <Modal opened={isOpen} onClose={close} title={t.adjustTitle} closeButtonProps={{ "aria-label": closeLabel }}>
        <AdjustForm
          actorId={actorId}
          names={names}
          onCancel={close}
          onDone={(name) => {
            close();
            return onDone(name);
          }}
        />
      </Modal>
    </>
  );
}

function AdjustForm({ actorId, names, onDone, onCancel }: Props & { readonly onCancel: () => void }) {
  const t = useTexts(actors);
  const { cancel } = useTexts(common);
  const [direction, setDirection] = useState("refund");
  const { mutate, error, isPending } = useMutation(ActorsService.method.adjustActorQuota, {
    onSuccess: (_, { name = "" }) => onDone(name),
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const tokens = Number(form.get("tokens"));
    mutate({ actorId, name: String(form.get("name")), delta: direction === "charge" ? tokens : -tokens });
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <NativeSelect name="name" label={t.quota} data={[...names]} />
        <SegmentedControl
          aria-label={t.direction}
          value={direction}
          data={[
            { value: "refund", label: t.refund },
            { value: "charge", label: t.charge },
          ]}
          onChange={setDirection}
        />
        <NumberInput
          name="tokens"
          label={t.tokens}
          min={1}
          max={MAX_INT32}
          allowDecimal={false}
          allowNegative={false}
          hideControls
          required
          withAsterisk={false}
        />
        <Text size="sm" c="dimmed">
          {t.adjustHint}
        </Text>
        <ErrorAlert error={error} />
        <Group justify="end" gap="xs">
          <Button variant="default" onClick={onCancel}>
            {cancel}
          </Button>
          <Button type="submit" loading={isPending}>
            {direction === "charge" ? t.charge : t.refund}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
