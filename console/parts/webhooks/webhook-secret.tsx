import { Alert, Text } from "@mantine/core";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";
import { SecretOnce } from "../secret-once.tsx";

/** Shows the new secret of an endpoint. Empty: the request that created it was repeated. */
export function WebhookSecret({ secret }: { readonly secret: string }) {
  const t = useTexts(webhooks);
  if (secret === "") return <Alert role="status">{t.alreadyCreated}</Alert>;
  return (
    <SecretOnce title={t.secretTitle} secret={secret}>
      <Text size="sm">{t.secretUse}</Text>
    </SecretOnce>
  );
}
