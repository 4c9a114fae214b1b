import { FileInput, Paper, Stack, Text } from "@mantine/core";
import { type DragEvent, useState } from "react";
import { importTexts } from "../../texts/import.ts";
import { useTexts } from "../../texts/language.tsx";
import { MAX_MEBIBYTES } from "./use-import-file.ts";

interface Props {
  readonly file: File | null;
  readonly onChoose: (file: File | null) => void;
}

export function FileChooser({ file, onChoose }: Props) {
  const t = useTexts(importTexts);
  const [isOver, setOver] = useState(false);
  const drag = (event: DragEvent) => {
    event.preventDefault();
    setOver(event.type === "dragover");
  };
  const drop = (event: DragEvent) => {
    drag(event);
    const [dropped] = event.dataTransfer.files;
    if (dropped !== undefined) onChoose(dropped);
  };
  return (
    <Paper
      withBorder
      p="md"
      bg={isOver ? "var(--mantine-primary-color-light)" : undefined}
      onDragOver={drag}
      onDragLeave={drag}
      onDrop={drop}
    >
      <Stack gap="xs">
        <FileInput
          label={t.file}
          description={t.fileHint(MAX_MEBIBYTES)}
          placeholder={t.choose}
          accept=".csv,text/csv"
          value={file}
          onChange={onChoose}
        />
        <Text size="sm" c="dimmed">
          {t.local}
        </Text>
      </Stack>
    </Paper>
  );
}
