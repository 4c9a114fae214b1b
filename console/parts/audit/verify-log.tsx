import { Alert, Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, useEffect, useState } from "react";
import { audit } from "../../texts/audit.ts";
import { common } from "../../texts/common.ts";
import { useTexts } from "../../texts/language.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { PageLoader } from "../page-loader.tsx";
import { CopyableCode } from "../secret-once.tsx";
import { type Head, headOf } from "./audit-proof.ts";
import { type Comparison, type LogVerification, matches, remember, useLogVerification } from "./audit-verification.ts";
import { type Check, CheckList } from "./check-list.tsx";

/** Verifies that the log was not rewritten, as far as a browser can know. */
export function VerifyLog() {
  const t = useTexts(audit);
  const names = useTexts(common);
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button variant="default" onClick={open}>
        {t.verifyLog}
      </Button>
      <Modal
        opened={isOpen}
        onClose={close}
        title={t.verifyLog}
        closeButtonProps={{ "aria-label": names.close }}
        size="lg"
      >
        <Verification />
      </Modal>
    </>
  );
}

function Verification() {
  const t = useTexts(audit);
  const { data, error, isPending, mutate } = useLogVerification();
  useEffect(() => mutate(null), [mutate]);
  return (
    <Stack>
      <ErrorAlert error={error} onRetry={() => mutate(null)} />
      {isPending && <PageLoader />}
      {data !== undefined && <Result verification={data} onAccept={() => mutate(null)} />}
      <KeptCheckpoint onCompare={mutate} />
      {data !== undefined && (
        <>
          <Labeled label={t.checkpoint} text={data.checkpoint.trim()} />
          <Labeled label={t.verifierKey} text={data.verifierKey} />
        </>
      )}
      <Text size="sm" c="dimmed">
        {t.limitation}
      </Text>
    </Stack>
  );
}

interface ResultProps {
  readonly verification: LogVerification;
  /** Called when the browser has remembered the checkpoint. */
  readonly onAccept: () => void;
}

function Result({ verification, onAccept }: ResultProps) {
  const t = useTexts(audit);
  const accept = () => {
    remember(verification);
    onAccept();
  };
  return (
    <>
      <CheckList label={t.verification} checks={useChecks(verification)} />
      {verification.signature !== "failed" && !matches({ ...verification, kept: null }) && (
        <Alert color="yellow">
          <Text size="sm">{t.acceptHint}</Text>
          <Button mt="sm" size="xs" variant="default" onClick={accept}>
            {t.accept}
          </Button>
        </Alert>
      )}
    </>
  );
}

function Labeled({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <div>
      <Text size="sm">{label}</Text>
      <CopyableCode label={label} text={text} />
    </div>
  );
}

function useChecks({ head, signature, remembered, kept }: LogVerification): readonly Check[] {
  const t = useTexts(audit);
  const comparison = (source: string, { continuation, size }: Comparison): Check => {
    const text = t.continuation[continuation];
    return {
      outcome: continuation === "continues" ? "verified" : "failed",
      text: `${source}: ${typeof text === "string" ? text : text(t.events(size))}`,
    };
  };
  return [
    { outcome: signature, text: `${t.signature[signature]} (${t.events(head.size)})` },
    ...(remembered === null
      ? [{ outcome: "unknown" as const, text: t.continuation.first }]
      : [
          remembered.isSameKey
            ? { outcome: "verified" as const, text: t.sameKey.verified }
            : { outcome: "failed" as const, text: t.sameKey.failed },
          comparison(t.seenHere, remembered),
        ]),
    ...(kept === null ? [] : [comparison(t.kept, kept)]),
  ];
}

function KeptCheckpoint({ onCompare }: { readonly onCompare: (kept: Head | null) => void }) {
  const t = useTexts(audit);
  const [text, setText] = useState("");
  const [isInvalid, setInvalid] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Text that was copied may lack the end of the last line, or have those of Windows.
    const head = headOf(`${text.trim().replaceAll("\r", "")}\n`);
    setInvalid(head === null && text.trim() !== "");
    if (head !== null || text.trim() === "") onCompare(head);
  };
  return (
    <form onSubmit={submit}>
      <Textarea
        label={t.keptLabel}
        description={t.keptHint}
        error={isInvalid && t.notCheckpoint}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
        rows={4}
        classNames={{ input: "monospace" }}
      />
      <Group mt="xs">
        <Button type="submit" variant="default" size="xs">
          {text.trim() === "" ? t.verifyAgain : t.compare}
        </Button>
      </Group>
    </form>
  );
}
