import { useMutation } from "@connectrpc/connect-query";
import { Button, Group, Modal, Stack } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { FormEvent } from "react";
import { KeyKind } from "../../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ImportedApiKeysService } from "../../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { useRefresh } from "../../../session/refresh.ts";
import { common } from "../../../texts/common.ts";
import { keyPage } from "../../../texts/key-page.ts";
import { useTexts } from "../../../texts/language.tsx";
import { ErrorAlert } from "../../error-alert.tsx";
import { KeyFields } from "../key-fields.tsx";
import { changedPaths, fieldsOf, valuesOf } from "../key-values.ts";
import type { KeyDialog } from "./dialog.ts";

/** Changes the fields that people write. Only those that differ are sent, so that nobody's other change is undone. */
export function EditKey({ apiKey, onClose }: KeyDialog) {
  const t = useTexts(keyPage);
  const { cancel, close, save } = useTexts(common);
  const before = valuesOf(apiKey);
  const form = useForm({ initialValues: before });
  const refresh = useRefresh();
  const options = { onSuccess: onClose, onSettled: () => refresh() };
  const issued = useMutation(IssuedApiKeysService.method.updateIssuedApiKey, options);
  const imported = useMutation(ImportedApiKeysService.method.updateImportedApiKey, options);
  const { error, isPending } = apiKey.kind === KeyKind.ISSUED ? issued : imported;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const paths = changedPaths(before, form.values);
    if (paths.length === 0) return onClose();
    const { actorId: _, restrictedToActorIds: __, ...fields } = fieldsOf(form.values);
    const changed = { keyId: apiKey.keyId, ...fields };
    if (apiKey.kind === KeyKind.ISSUED) issued.mutate({ issuedApiKey: changed, updateMask: { paths } });
    else imported.mutate({ importedApiKey: changed, updateMask: { paths } });
  };
  return (
    <Modal opened onClose={onClose} title={t.editTitle} size="lg" closeButtonProps={{ "aria-label": close }}>
      <form onSubmit={submit}>
        <Stack>
          <KeyFields form={form} error={error} isNew={false} />
          <ErrorAlert error={error} />
          <Group justify="end">
            <Button variant="default" onClick={onClose}>
              {cancel}
            </Button>
            <Button type="submit" loading={isPending}>
              {save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
