import { Alert, Button, Group, List, NativeSelect, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { HASH_ALGORITHM_NAMES, HASH_ENCODING_NAMES } from "../../../src/cli/import/fields.ts";
import { importTexts } from "../../texts/import.ts";
import { useTexts } from "../../texts/language.tsx";
import { type Columns, choicesOf, type Meaning, missingOf, needs, shownNames } from "./columns.ts";

interface Props {
  readonly columns: Columns;
  readonly onChange: (columns: Columns) => void;
}

/** What each column of the file is imported as. */
export function ColumnTable({ columns, onChange }: Props) {
  const t = useTexts(importTexts);
  const { meanings } = columns;
  const setMeaning = (column: number, meaning: Meaning) =>
    onChange({ ...columns, meanings: meanings.with(column, meaning) });
  const ignoreRest = () => onChange({ ...columns, meanings: meanings.map((meaning) => meaning ?? "") });
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t.columns}
      </Title>
      <Table aria-label={t.columns} layout="fixed" maw="48rem">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{t.column}</Table.Th>
            <Table.Th scope="col">{t.importedAs}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shownNames(columns).map((name, column) => (
            <Table.Tr key={columns.header[column]}>
              <Table.Td>
                <Text ff="monospace" size="sm" style={{ overflowWrap: "anywhere" }}>
                  {name}
                </Text>
              </Table.Td>
              <Table.Td>
                <MeaningSelect columns={columns} column={column} name={name} onChange={setMeaning} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <HashFields columns={columns} onChange={onChange} />
      <MissingAlert columns={columns} onIgnoreRest={ignoreRest} />
    </Stack>
  );
}

interface MeaningProps {
  readonly columns: Columns;
  readonly column: number;
  readonly name: string;
  readonly onChange: (column: number, meaning: Meaning) => void;
}

function MeaningSelect({ columns, column, name, onChange }: MeaningProps) {
  const t = useTexts(importTexts);
  const meaning = columns.meanings[column] ?? null;
  const own = `metadata.${columns.header[column]}`;
  const choices = choicesOf(columns, column).filter((field) => field !== own);
  return (
    <NativeSelect
      size="xs"
      aria-label={t.meaningOf(name)}
      error={meaning === null}
      value={meaning === own ? OWN : (meaning ?? UNDECIDED)}
      onChange={({ currentTarget: { value } }) => onChange(column, value === OWN ? own : value)}
      data={[
        ...(meaning === null ? [{ value: UNDECIDED, label: t.undecided, disabled: true }] : []),
        { value: "", label: t.ignored },
        { value: OWN, label: `metadata.${name}` },
        ...choices,
      ]}
    />
  );
}

/** A choice that is not made, and the column's own entry of the metadata, whose name may be a raw key in a file without a header. */
const [UNDECIDED, OWN] = ["?", "metadata."];

/** What is the same for all hashes of the file. */
function HashFields({ columns, onChange }: Props) {
  const t = useTexts(importTexts).hash;
  const { meanings, hash } = columns;
  const change = (changed: Partial<typeof hash>) => onChange({ ...columns, hash: { ...hash, ...changed } });
  const hasHmac = hash.algorithm?.startsWith("hmac") === true && !meanings.includes("raw_key_hash.hmac_key_id");
  const choice = (option: "algorithm" | "encoding", names: readonly string[]) =>
    needs(option, meanings) && (
      <NativeSelect
        label={t[option]}
        data={["", ...names]}
        value={hash[option] ?? ""}
        onChange={({ currentTarget: { value } }) => change({ [option]: value || undefined })}
      />
    );
  return (
    <Group>
      {choice("algorithm", HASH_ALGORITHM_NAMES)}
      {choice("encoding", HASH_ENCODING_NAMES)}
      {hasHmac && (
        <TextInput
          label={t.hmacKeyId}
          value={hash.hmac_key_id ?? ""}
          onChange={({ currentTarget: { value } }) => change({ hmac_key_id: value || undefined })}
        />
      )}
    </Group>
  );
}

function MissingAlert({ columns, onIgnoreRest }: { readonly columns: Columns; readonly onIgnoreRest: () => void }) {
  const t = useTexts(importTexts);
  const missing = missingOf(columns);
  if (missing.length === 0) return null;
  return (
    <Alert color="yellow" title={t.missingTitle}>
      <List size="sm">
        {missing.map((what) => (
          <List.Item key={what}>{t.missing[what]}</List.Item>
        ))}
      </List>
      {missing.includes("columns") && (
        <Button mt="sm" size="xs" variant="default" onClick={onIgnoreRest}>
          {t.ignoreRest}
        </Button>
      )}
    </Alert>
  );
}
