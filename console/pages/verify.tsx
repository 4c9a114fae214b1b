import { Button, Stack, TagsInput, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { ApiKeysService, type ExplainApiKeyResponse } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { Explanation } from "../parts/keys/explanation.tsx";
import { Page } from "../parts/page.tsx";
import { SecretInput } from "../parts/secret-input.tsx";
import { forget } from "../session/forget.ts";
import { useSecretCall } from "../session/secret-call.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { verify } from "../texts/verify.ts";

/** Explains whether a credential would be accepted. The credential enters no URL, history, storage or cache. */
export function VerifyPage() {
  const t = useTexts(verify);
  const [requiredScopes, setRequiredScopes] = useState<string[]>([]);
  const [explanation, setExplanation] = useState<ExplainApiKeyResponse | null>(null);
  const { call, isPending, error } = useSecretCall(ApiKeysService.method.explainApiKey);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const {
      credential = "",
      clientIp = "",
      audience = "",
    } = Object.fromEntries(new FormData(form)) as Record<string, string>;
    const response = await call({
      credential: credential.trim(),
      requiredScopes,
      ...(clientIp !== "" && { clientIp }),
      ...(audience !== "" && { audience }),
    });
    setExplanation(response ?? null);
    if (response !== undefined) forget(form, "credential");
  };
  return (
    <Page title={useTexts(common).pages.verify}>
      <form onSubmit={(event) => void submit(event)} autoComplete="off">
        <Stack maw="36rem">
          <SecretInput name="credential" label={t.credential} description={t.credentialHint} required />
          <TextInput name="clientIp" label={t.clientIp} />
          <TagsInput
            label={t.requiredScopes}
            value={requiredScopes}
            onChange={setRequiredScopes}
            splitChars={[",", " "]}
          />
          <TextInput name="audience" label={t.audience} />
          <Button type="submit" loading={isPending} style={{ alignSelf: "start" }}>
            {t.explain}
          </Button>
        </Stack>
      </form>
      <ErrorAlert error={error} />
      {explanation !== null && <Explanation explanation={explanation} />}
    </Page>
  );
}
