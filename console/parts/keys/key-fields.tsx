import { Select, TagsInput, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useCaller } from "../../session/permissions.ts";
import { key } from "../../texts/key.ts";
import { keyForm } from "../../texts/key-form.ts";
import { useTexts } from "../../texts/language.tsx";
import { LimitsEditor } from "../limits-editor.tsx";
import { fieldErrors } from "./field-errors.ts";
import type { KeyValues } from "./key-values.ts";

interface Props {
  readonly form: UseFormReturnType<KeyValues>;
  /** Why the server has rejected the values; null: it has not. */
  readonly error: Error | null;
  /** Whether the key does not exist yet: some fields cannot be changed later. */
  readonly isNew: boolean;
}

const SEPARATORS = [",", " "];

/** The fields of a key that people write. */
export function KeyFields({ form, error, isNew }: Props) {
  const names = useTexts(key);
  const t = useTexts(keyForm);
  const { scopes: held, restrictedToActorIds: ownActorIds } = useCaller();
  const { d1, d30, d90, y1 } = t.lifetimes;
  const errors = fieldErrors(error);
  const input = (name: keyof KeyValues) => ({ ...form.getInputProps(name), error: errors[name] });
  const isAdminToken = form.values.scopes.some((scope) => scope.startsWith("keyhold:"));
  return (
    <>
      <TextInput label={names.name} description={t.nameHint} required {...input("name")} />
      {isNew && <TextInput label={names.actor} description={t.actorHint} required {...input("actorId")} />}
      <TagsInput
        label={names.scopes}
        description={t.scopesHint}
        splitChars={SEPARATORS}
        data={held.filter((scope) => scope.startsWith("keyhold:"))}
        {...input("scopes")}
      />
      {isNew && isAdminToken && (
        <TagsInput
          label={names.restrictedTo}
          description={t.restrictedHint}
          splitChars={SEPARATORS}
          data={ownActorIds}
          {...input("restrictedToActorIds")}
        />
      )}
      <Select
        label={isNew ? t.lifetime : t.newLifetime}
        allowDeselect={false}
        data={[
          { value: "", label: isNew ? t.lifetimes.default : t.unchanged },
          ...[d1, d30, d90, y1].map((label, index) => ({ value: ["1d", "30d", "90d", "1y"][index] ?? "", label })),
        ]}
        {...input("ttl")}
      />
      <Textarea label={names.metadata} description={t.metadataHint} autosize rows={3} {...input("metadata")} />
      <TagsInput
        label={names.acceptedFrom}
        description={t.cidrsHint}
        splitChars={SEPARATORS}
        {...input("allowedCidrs")}
      />
      <LimitsEditor
        value={form.values.limits}
        onChange={(limits) => form.setFieldValue("limits", limits)}
        error={error}
      />
    </>
  );
}
