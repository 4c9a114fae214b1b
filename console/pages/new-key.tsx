import { Button, Stack } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useRef, useState } from "react";
import {
  type CreateIssuedApiKeyResponse,
  IssuedApiKeysService,
} from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { KeyFields } from "../parts/keys/key-fields.tsx";
import { fieldsOf, NEW_KEY } from "../parts/keys/key-values.ts";
import { NewSecretDialog } from "../parts/keys/new-secret-dialog.tsx";
import { Page } from "../parts/page.tsx";
import { useSecretCall } from "../session/secret-call.ts";
import { common } from "../texts/common.ts";
import { keyForm } from "../texts/key-form.ts";
import { useTexts } from "../texts/language.tsx";

/** Creates a key, and shows its secret this once. */
export function NewKeyPage() {
  const t = useTexts(keyForm);
  const names = useTexts(common).pages;
  const form = useForm({ initialValues: NEW_KEY });
  const { call, isPending, error } = useSecretCall(IssuedApiKeysService.method.createIssuedApiKey);
  const [created, setCreated] = useState<CreateIssuedApiKeyResponse | null>(null);
  // A repeat after a lost response creates no second key (AIP-155).
  const requestId = useRef(crypto.randomUUID());
  const queries = useQueryClient();
  const navigate = useNavigate();
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const response = await call({ ...fieldsOf(form.values), requestId: requestId.current });
    if (response === undefined) return;
    setCreated(response);
    void queries.invalidateQueries();
  };
  const close = () => {
    const keyId = created?.issuedApiKey?.keyId;
    setCreated(null);
    if (keyId !== undefined) void navigate({ to: "/keys/$keyId", params: { keyId } });
  };
  return (
    <Page title={names.newKey}>
      <form
        onSubmit={(event) => void submit(event)}
        onChange={() => {
          requestId.current = crypto.randomUUID();
        }}
      >
        <Stack maw="36rem">
          <KeyFields form={form} error={error} isNew />
          <ErrorAlert error={error} />
          <Button type="submit" loading={isPending} style={{ alignSelf: "start" }}>
            {t.create}
          </Button>
        </Stack>
      </form>
      {created !== null && <NewSecretDialog title={t.createdTitle} secret={created.secret ?? ""} onClose={close} />}
    </Page>
  );
}
