import { Button, type ButtonProps, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, type ReactElement, type ReactNode, useState } from "react";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { ErrorAlert } from "./error-alert.tsx";

interface Props {
  readonly opened: boolean;
  /** Closes the dialog: by Esc, Cancel, the close button or a click outside. */
  readonly onClose: () => void;
  readonly title: string;
  /** What happens when it is confirmed. */
  readonly description: ReactNode;
  /** The button that confirms. */
  readonly confirmLabel: string;
  /** Whether the change cannot be undone, or stops something that works. */
  readonly isDangerous?: boolean;
  /** What must be typed before the button is enabled, such as the name of what is deleted. */
  readonly typedName?: string;
  /** The mutation or the secret call that `onConfirm` starts. An error of it from before the dialog was opened is not shown. */
  readonly change: { readonly isPending: boolean; readonly error: Error | null };
  /** Receives the named fields among the children. Close the dialog once the change has succeeded. */
  readonly onConfirm: (fields: FormData) => void;
  /** What is shown instead once the change has succeeded, such as a secret that is shown once. */
  readonly result?: ReactElement | null;
  /** Fields. The first to have the focus has `data-autofocus`. */
  readonly children?: ReactNode;
}

interface ConfirmButtonProps extends Omit<Props, "opened" | "onClose" | "onConfirm"> {
  readonly label: string;
  /** How the button looks, and its name if the label does not say enough. */
  readonly button?: ButtonProps & { readonly "aria-label"?: string };
  /** Receives the function that closes the dialog, too. */
  readonly onConfirm: (fields: FormData, close: () => void) => void;
  readonly onClose?: () => void;
}

/**
 * A button that opens a dialog which asks before a change. A result is shown even if the dialog was closed meanwhile.
 *
 * @example
 * const deletion = useMutation(method.deleteThing);
 * <ConfirmButton label={t.delete} title={t.delete} description={t.deleted} confirmLabel={t.delete} isDangerous typedName={name}
 *   change={deletion} onConfirm={(_, close) => deletion.mutate({ name }, { onSuccess: close })} />
 */
export function ConfirmButton({ label, button, result = null, onConfirm, onClose, ...dialog }: ConfirmButtonProps) {
  const [isOpen, { open, close }] = useDisclosure(false);
  const leave = () => {
    close();
    onClose?.();
  };
  return (
    <>
      <Button variant="default" {...button} onClick={open}>
        {label}
      </Button>
      <ConfirmDialog
        {...dialog}
        opened={isOpen || result !== null}
        onClose={leave}
        result={result}
        onConfirm={(fields) => onConfirm(fields, close)}
      />
    </>
  );
}

/** Asks before a change. A failed change leaves the dialog open, with what was typed. */
export function ConfirmDialog({ opened, onClose, title, result = null, ...form }: Props) {
  const t = useTexts(common);
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={title}
      closeButtonProps={{ "aria-label": t.close }}
      closeOnClickOutside={!form.change.isPending && result === null}
    >
      {result === null ? (
        <ConfirmForm onClose={onClose} {...form} />
      ) : (
        <Stack>
          {result}
          <Button ref={focus} onClick={onClose} style={{ alignSelf: "end" }}>
            {t.close}
          </Button>
        </Stack>
      )}
    </Modal>
  );
}

const focus = (element: HTMLElement | null) => element?.focus();

/** Its state lasts as long as the dialog is open. */
function ConfirmForm(props: Omit<Props, "opened" | "title" | "result">) {
  const { onClose, description, confirmLabel, isDangerous = false, typedName, change, onConfirm, children } = props;
  const t = useTexts(common);
  const [typed, setTyped] = useState("");
  const [wasConfirmed, setConfirmed] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (change.isPending) return;
    setConfirmed(true);
    onConfirm(new FormData(event.currentTarget));
  };
  return (
    <form onSubmit={submit} autoComplete="off">
      <Stack>
        <Text component="div" size="sm">
          {description}
        </Text>
        {children}
        {typedName !== undefined && (
          <TextInput
            label={t.typeToConfirm(typedName)}
            value={typed}
            onChange={({ currentTarget }) => setTyped(currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
        )}
        <ErrorAlert error={wasConfirmed ? change.error : null} />
        <Group justify="end">
          <Button variant="default" onClick={onClose} data-autofocus>
            {t.cancel}
          </Button>
          <Button
            type="submit"
            color={isDangerous ? "red.9" : undefined}
            loading={change.isPending}
            disabled={typedName !== undefined && typed.trim() !== typedName.trim()}
          >
            {confirmLabel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
