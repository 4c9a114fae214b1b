import { Button, Stack, Text } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { forget } from "../session/forget.ts";
import { signIn } from "../session/sign-in.ts";
import { useTexts } from "../texts/language.tsx";
import { session } from "../texts/session.ts";
import { ErrorAlert } from "./error-alert.tsx";
import { SecretInput } from "./secret-input.tsx";
import { CopyableCode } from "./secret-once.tsx";

const FIRST_TOKEN = 'npx keyhold admin token create --name "first administrator"';

const CREDENTIAL = /^[!-~]+$/;

/** Signs in with an admin token. */
export function TokenForm() {
  const t = useTexts(session);
  const [isMalformed, setMalformed] = useState(false);
  const [isWaiting, setWaiting] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const credential = String(new FormData(form).get("token")).trim();
    setMalformed(!CREDENTIAL.test(credential));
    if (!CREDENTIAL.test(credential)) return;
    setWaiting(true);
    try {
      await signIn(credential);
      forget(form, "token");
    } catch (cause) {
      setError(cause as Error);
    } finally {
      setWaiting(false);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)} autoComplete="off">
      <Stack>
        <SecretInput
          name="token"
          label={t.token}
          description={t.tokenHint}
          error={isMalformed && t.malformed}
          data-autofocus
          required
          withAsterisk={false}
        />
        <ErrorAlert error={error} />
        <Button type="submit" loading={isWaiting}>
          {t.signIn}
        </Button>
        <Text size="sm">{t.first}</Text>
        <CopyableCode label={t.first} text={FIRST_TOKEN} />
      </Stack>
    </form>
  );
}
