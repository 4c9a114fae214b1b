import { Alert, Button, Group, Stack } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useBlocker } from "@tanstack/react-router";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { useCan } from "../../session/permissions.ts";
import { common } from "../../texts/common.ts";
import { importTexts } from "../../texts/import.ts";
import { useTexts } from "../../texts/language.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { LinkButton } from "../links.tsx";
import { FailedRows } from "./failed-rows.tsx";
import { ImportPreview } from "./import-preview.tsx";
import { ImportProgress } from "./import-progress.tsx";
import type { ReadFile } from "./read-file.ts";
import { useImportRun } from "./use-import-run.ts";

interface Props {
  readonly read: ReadFile;
  readonly onStart: () => void;
  readonly onDiscard: () => void;
}

/** Shows what a file has, and imports it after the confirmation. */
export function ImportRun({ read, onStart, onDiscard }: Props) {
  const t = useTexts(importTexts);
  const { cancel: cancelText } = useTexts(common);
  const can = useCan();
  const queries = useQueryClient();
  const { items } = read;
  const { run, start, pause, cancel } = useImportRun(items, () => void queries.invalidateQueries());
  const { status, waitsFor, error } = run;
  const isOpen = status === "running" || status === "paused";
  useBlocker({ shouldBlockFn: () => isOpen && !window.confirm(t.leave), enableBeforeUnload: isOpen });
  const confirm = () => {
    onStart();
    start();
  };
  const failures = [...read.failures, ...run.failures].sort((a, b) => a.row.row - b.row.row);
  return (
    <Stack>
      {status === "ready" ? <ImportPreview read={read} /> : <ImportProgress run={run} read={read} />}
      {waitsFor !== null && <Alert color="yellow">{t.waits(waitsFor.message)}</Alert>}
      <ErrorAlert error={error} />
      <Group>
        {status === "ready" && items.length > 0 && <Button onClick={confirm}>{t.start(items.length)}</Button>}
        {status === "running" && <Button onClick={pause}>{t.pause}</Button>}
        {status === "paused" && <Button onClick={start}>{t.resume}</Button>}
        {isOpen && (
          <Button variant="default" onClick={cancel}>
            {cancelText}
          </Button>
        )}
        {status === "ended" && can(ApiKeysService.method.listApiKeys) && <LinkButton to="/keys">{t.toKeys}</LinkButton>}
        {!isOpen && (
          <Button variant="default" onClick={onDiscard}>
            {t.discard}
          </Button>
        )}
      </Group>
      <FailedRows failures={failures} />
    </Stack>
  );
}
