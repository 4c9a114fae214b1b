import { Alert, Stack, Table } from "@mantine/core";
import type { ExplainApiKeyResponse } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { useCan } from "../../session/permissions.ts";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";
import { verify } from "../../texts/verify.ts";
import { Fact, Facts } from "../facts.tsx";
import { LinkAnchor } from "../links.tsx";
import { ScrollX } from "../scroll-x.tsx";
import { StatusBadge } from "./status-badge.tsx";

/** The verdict on a credential, and each check with its result. */
export function Explanation({ explanation }: { readonly explanation: ExplainApiKeyResponse }) {
  const t = useTexts(verify);
  const names = useTexts(key);
  const can = useCan();
  const { isValid, errorMessage = "", keyId, actorId, status, credentialType, checks } = explanation;
  const isLinked = keyId !== undefined && can(ApiKeysService.method.getApiKey);
  return (
    <Stack>
      <Alert role="status" color={isValid ? "green" : "red"}>
        {isValid ? t.valid : t.invalid(errorMessage)}
      </Alert>
      <Facts>
        <Fact name={names.key}>
          {isLinked ? (
            <LinkAnchor to="/keys/$keyId" params={{ keyId }}>
              {keyId}
            </LinkAnchor>
          ) : (
            keyId
          )}
        </Fact>
        <Fact name={names.actor}>{actorId}</Fact>
        <Fact name={names.status}>{status !== undefined && <StatusBadge status={status} />}</Fact>
        <Fact name={t.type}>{credentialType !== undefined && t.types[credentialType]}</Fact>
      </Facts>
      <ScrollX label={t.checks}>
        <Table aria-label={t.checks}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t.check}</Table.Th>
              <Table.Th scope="col">{t.result}</Table.Th>
              <Table.Th scope="col">{t.why}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {checks.map(({ name, result, detail }) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{t.names[name]}</Table.Th>
                <Table.Td>{t.results[result]}</Table.Td>
                <Table.Td>{detail}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollX>
    </Stack>
  );
}
