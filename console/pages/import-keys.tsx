import { Alert, Progress, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { ColumnTable } from "../parts/import/column-table.tsx";
import { FileChooser } from "../parts/import/file-chooser.tsx";
import { ImportRun } from "../parts/import/import-run.tsx";
import { MAX_MEBIBYTES, useImportFile } from "../parts/import/use-import-file.ts";
import { Page } from "../parts/page.tsx";
import { common } from "../texts/common.ts";
import { importTexts } from "../texts/import.ts";
import { useTexts } from "../texts/language.tsx";

/** Imports the keys of a file: it is read and shown here, and sent when the person confirms. */
export function ImportKeysPage() {
  const t = useTexts(importTexts);
  const { file, columns, part, read, error, isTooLarge, choose, setColumns } = useImportFile();
  const [isStarted, setStarted] = useState(false);
  const discard = () => {
    setStarted(false);
    choose(null);
  };
  const problem = isTooLarge ? t.tooLarge(MAX_MEBIBYTES) : error?.message;
  return (
    <Page title={useTexts(common).pages.importKeys}>
      <Stack>
        {!isStarted && <FileChooser file={file} onChoose={choose} />}
        {problem !== undefined && (
          <Alert role="alert" color="red" title={t.unusable}>
            {problem}
          </Alert>
        )}
        {!isStarted && columns !== null && <ColumnTable columns={columns} onChange={setColumns} />}
        {part > 0 && read === null && error === null && (
          <>
            <Text size="sm">{t.reading}</Text>
            <Progress value={part * 100} aria-label={t.reading} />
          </>
        )}
        {read !== null && <ImportRun read={read} onStart={() => setStarted(true)} onDiscard={discard} />}
      </Stack>
    </Page>
  );
}
