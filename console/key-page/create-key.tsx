import { Button, Checkbox, Group, Modal, NativeSelect, Stack, TagsInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { type FormEvent, useRef, useState } from "react";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { fieldErrors } from "../parts/keys/field-errors.ts";
import { NewSecretDialog } from "../parts/keys/new-secret-dialog.tsx";
import { useRefresh } from "../session/refresh.ts";
import { useSecretCall } from "../session/secret-call.ts";
import { common } from "../texts/common.ts";
import { key } from "../texts/key.ts";
import { keyForm } from "../texts/key-form.ts";
import { useLanguage, useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { defaultTtl, durationText, lifetimesOf, secondsOf } from "./lifetimes.ts";
import { useKeyPageSession } from "./owner.ts";

const SEPARATORS = [",", " "];

/** Creates a key of the owner, and shows its secret this once. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const t = useTexts(ownerPage);
  const names = useTexts(key);
  const form = useTexts(keyForm);
  const { cancel, close } = useTexts(common);
  const { language } = useLanguage();
  const { actorId, allowedScopes, maxTtl } = useKeyPageSession();
  const max = secondsOf(maxTtl);
  const lifetimes = lifetimesOf(max, language);
  const { values, getInputProps } = useForm({
    initialValues: { name: "", scopes: [] as string[], ttl: defaultTtl(lifetimes), allowedCidrs: [] as string[] },
  });
  const { call, isPending, error } = useSecretCall(IssuedApiKeysService.method.createIssuedApiKey);
  const [secret, setSecret] = useState<string | null>(null);
  const refresh = useRefresh();
  // A repeat after a lost response creates no second key (AIP-155).
  const requestId = useRef({ id: crypto.randomUUID(), values });
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (requestId.current.values !== values) requestId.current = { id: crypto.randomUUID(), values };
    const { name, scopes, ttl, allowedCidrs } = values;
    const response = await call({
      ...{ actorId, name, scopes, requestId: requestId.current.id },
      ...(ttl !== "" && { ttl }),
      ...(allowedCidrs.length > 0 && { ipRestriction: { allowedCidrs } }),
    });
    if (response === undefined) return;
    setSecret(response.secret ?? "");
    refresh(ApiKeysService.method.listApiKeys);
  };
  if (secret !== null) return <NewSecretDialog title={form.createdTitle} secret={secret} onClose={onClose} />;
  const errors = fieldErrors(error);
  const input = (name: keyof typeof values) => ({ ...getInputProps(name), error: errors[name] });
  return (
    <Modal
      opened
      onClose={onClose}
      title={t.create}
      closeOnClickOutside={!isPending}
      closeButtonProps={{ "aria-label": close }}
    >
      <form onSubmit={(event) => void submit(event)} autoComplete="off">
        <Stack>
          <TextInput label={names.name} description={form.nameHint} required data-autofocus {...input("name")} />
          {allowedScopes.length > 0 && (
            <Checkbox.Group label={names.scopes} description={t.scopesHint} {...input("scopes")}>
              <Stack gap="xs" mt="xs">
                {allowedScopes.map((scope) => (
                  <Checkbox key={scope} value={scope} label={scope} className="breakable" />
                ))}
              </Stack>
            </Checkbox.Group>
          )}
          <NativeSelect
            label={t.lifetime}
            {...(max !== null && { description: t.atMost(durationText(max, language)) })}
            data={[
              ...lifetimes.map(({ ttl, label }) => ({ value: ttl, label })),
              ...(max === null ? [{ value: "", label: t.noExpiry }] : []),
            ]}
            {...input("ttl")}
          />
          <TagsInput
            label={names.acceptedFrom}
            description={form.cidrsHint}
            splitChars={SEPARATORS}
            {...input("allowedCidrs")}
          />
          <ErrorAlert error={error} />
          <Group justify="end">
            <Button variant="default" onClick={onClose}>
              {cancel}
            </Button>
            <Button type="submit" loading={isPending}>
              {form.create}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
