import { Text } from "@mantine/core";
import { AuthMethod } from "../../../gen/keyhold/v2alpha1/callers_pb.js";
import { useCaller } from "../../session/permissions.ts";
import { keyForm } from "../../texts/key-form.ts";
import { useTexts } from "../../texts/language.tsx";
import { CopyableCode } from "../secret-once.tsx";
import { verifierProgram, verifyCommand } from "./snippets.ts";

/** A command and a program that verify a secret. */
export function VerifySnippets({ secret }: { readonly secret: string }) {
  const t = useTexts(keyForm);
  const needsToken = useCaller().authMethod !== AuthMethod.NONE;
  return (
    <>
      <Text fw={600}>{t.tryIt}</Text>
      <CopyableCode label={t.tryIt} text={verifyCommand(secret, needsToken)} />
      <Text fw={600}>{t.client}</Text>
      <CopyableCode label={t.client} text={verifierProgram(needsToken)} />
      {needsToken && <Text size="sm">{t.tokenHint}</Text>}
    </>
  );
}
