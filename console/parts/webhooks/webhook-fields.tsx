import { Checkbox, SimpleGrid, Textarea, TextInput } from "@mantine/core";
import type { WebhookEndpoint } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";

/** What the server accepts as event types. */
const EVENT_TYPES = [
  ...["*", "key.issued", "key.imported", "key.updated", "key.rotated", "key.revoked", "key.deleted", "key.disabled"],
  ...["key.enabled", "key.expiring", "key.expired", "limit.exceeded", "signing_key.rotated", "admin_token.created"],
  "audit.checkpoint",
];

/** The fields of an endpoint that a caller chooses. `endpoint`: their values. */
export function WebhookFields({ endpoint }: { readonly endpoint?: WebhookEndpoint }) {
  const t = useTexts(webhooks);
  const { url, eventTypes = [], filter, description } = endpoint ?? {};
  return (
    <>
      <TextInput
        name="url"
        label={t.url}
        description={t.urlHint}
        defaultValue={url}
        inputMode="url"
        required
        data-autofocus
      />
      <Checkbox.Group label={t.eventTypes} defaultValue={eventTypes} withAsterisk>
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" mt="xs">
          {[...new Set([...EVENT_TYPES, ...eventTypes])].map((type) => (
            <Checkbox key={type} name="eventTypes" value={type} label={type === "*" ? t.anyEvent : type} />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
      <TextInput name="filter" label={t.filter} description={t.filterHint} defaultValue={filter} />
      <Textarea name="description" label={t.description} defaultValue={description} autosize={false} rows={2} />
    </>
  );
}

/** Returns what was entered into `WebhookFields`. */
export function webhookFields(fields: FormData) {
  const text = (name: string) => String(fields.get(name)).trim();
  const eventTypes = fields.getAll("eventTypes").map(String);
  return { url: text("url"), eventTypes, filter: text("filter"), description: text("description") };
}
