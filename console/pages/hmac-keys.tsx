import { useMutation, useQuery } from "@connectrpc/connect-query";
import { NativeSelect, Text, TextInput } from "@mantine/core";
import { type HmacKey, HmacKeysService, TextEncoding } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ConfirmButton } from "../parts/confirm-dialog.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { SecretInput } from "../parts/secret-input.tsx";
import { Time } from "../parts/time.tsx";
import { useCan } from "../session/permissions.ts";
import { useRefresh } from "../session/refresh.ts";
import { useSecretCall } from "../session/secret-call.ts";
import { common } from "../texts/common.ts";
import { hmacKeys } from "../texts/hmac-keys.ts";
import { useLanguage, useTexts } from "../texts/language.tsx";

const { method } = HmacKeysService;

const ENCODINGS = [TextEncoding.HEX, TextEncoding.BASE64, TextEncoding.BASE64URL, TextEncoding.UTF8] as const;

/** Lists the keys of HMAC hashes; there are at most 100. */
export function HmacKeysPage() {
  const t = useTexts(hmacKeys);
  const names = useTexts(common).pages;
  const can = useCan();
  const { data, error, refetch } = useQuery(method.listHmacKeys);
  const columns = useColumns();
  return (
    <Page title={names.hmacKeys} actions={can(method.createHmacKey) && <CreateButton />}>
      <Text size="sm" maw="44rem">
        {t.about}
      </Text>
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {data === undefined ? (
        error === null && <PageLoader />
      ) : (
        <DataTable label={names.hmacKeys} columns={columns} rows={data.hmacKeys} idOf={({ hmacKeyId }) => hmacKeyId} />
      )}
    </Page>
  );
}

function useColumns(): readonly Column<HmacKey>[] {
  const t = useTexts(hmacKeys);
  const { language } = useLanguage();
  const mayDelete = useCan()(method.deleteHmacKey);
  const columns: Column<HmacKey>[] = [
    {
      header: t.id,
      cell: ({ hmacKeyId, createTime, createdBy }) => (
        <>
          <Text className="breakable">{hmacKeyId}</Text>
          <Text className="breakable" size="sm" c="dimmed">
            {createTime && <Time date={createTime} />} · {createdBy}
          </Text>
        </>
      ),
    },
    { header: t.notAdopted, cell: ({ notAdoptedCount }) => notAdoptedCount.toLocaleString(language) },
  ];
  // The server keeps a key for as long as an imported key depends on it.
  const actions: Column<HmacKey> = {
    header: t.actions,
    cell: ({ hmacKeyId, notAdoptedCount }) =>
      notAdoptedCount > 0 ? <Text c="dimmed">{t.needed}</Text> : <DeleteButton id={hmacKeyId} />,
  };
  return mayDelete ? [...columns, actions] : columns;
}

function CreateButton() {
  const t = useTexts(hmacKeys);
  const refresh = useRefresh();
  const creation = useSecretCall(method.createHmacKey);
  const create = async (fields: FormData, close: () => void) => {
    const text = (name: string) => String(fields.get(name));
    const encoding = ENCODINGS.find((one) => String(one) === text("encoding")) ?? TextEncoding.UNSPECIFIED;
    const created = await creation.call({ hmacKeyId: text("id"), key: text("key"), encoding });
    if (created === undefined) return;
    refresh(method.listHmacKeys);
    close();
  };
  return (
    <ConfirmButton
      label={t.create}
      button={{ variant: "filled" }}
      title={t.create}
      description={t.createDetail}
      confirmLabel={t.store}
      change={creation}
      onConfirm={(fields, close) => void create(fields, close)}
    >
      <TextInput name="id" label={t.id} description={t.idHint} required data-autofocus />
      <SecretInput name="key" label={t.key} description={t.keyHint} required />
      <NativeSelect
        name="encoding"
        label={t.encoding}
        data={ENCODINGS.map((value) => ({ value: String(value), label: t.encodings[value] }))}
      />
    </ConfirmButton>
  );
}

function DeleteButton({ id }: { readonly id: string }) {
  const t = useTexts(hmacKeys);
  const refresh = useRefresh();
  const deletion = useMutation(method.deleteHmacKey, { onSuccess: () => refresh(method.listHmacKeys) });
  return (
    <ConfirmButton
      label={t.delete}
      button={{ size: "compact-sm", "aria-label": t.deleteNamed(id) }}
      title={t.deleteNamed(id)}
      description={t.deleteDetail}
      confirmLabel={t.delete}
      isDangerous
      typedName={id}
      change={deletion}
      onConfirm={(_, onSuccess) => deletion.mutate({ hmacKeyId: id }, { onSuccess })}
    />
  );
}
