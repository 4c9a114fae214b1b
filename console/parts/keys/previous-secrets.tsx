import { Table } from "@mantine/core";
import type { ApiKey } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { key } from "../../texts/key.ts";
import { keyPage } from "../../texts/key-page.ts";
import { useTexts } from "../../texts/language.tsx";
import { ScrollX } from "../scroll-x.tsx";
import { Time } from "../time.tsx";

/** The secrets that a rotation has replaced and whose grace periods have not ended, with their use since. */
export function PreviousSecrets({ apiKey: { previousSecrets } }: { readonly apiKey: ApiKey }) {
  const t = useTexts(keyPage);
  const names = useTexts(key);
  return (
    <ScrollX label={t.previous}>
      <Table aria-label={t.previous}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{names.hint}</Table.Th>
            <Table.Th scope="col">{t.previousUntil}</Table.Th>
            <Table.Th scope="col">{t.lastUse}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {previousSecrets.map(({ hint, expireTime, lastUsedTime }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: they have no id, and no state here
            <Table.Tr key={index}>
              <Table.Td>{hint}</Table.Td>
              <Table.Td>{expireTime && <Time date={expireTime} />}</Table.Td>
              <Table.Td>{lastUsedTime === undefined ? t.idle : <Time date={lastUsedTime} />}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollX>
  );
}
