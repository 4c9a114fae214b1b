import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { ANY_EVENT } from "../../webhooks/event-types.ts";
import { writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { writeList, writeMessage } from "../rest-json.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";

interface FieldOptions extends RemoteOptions {
  readonly endpointUrl?: string;
  readonly event?: string[];
  readonly filter?: string;
  readonly description?: string;
}

export async function create(endpointId: string, options: FieldOptions & SecretOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  const { endpointUrl: url = "", event: eventTypes = [ANY_EVENT], filter, description } = options;
  await outputSecret(options, async () => {
    const answer = await webhookEndpoints.createWebhookEndpoint({ endpointId, url, eventTypes, filter, description });
    const { secret, webhookEndpoint } = answer;
    if (secret === "") throw repeated(endpointId);
    return { secret, answer, record: webhookEndpoint ?? answer };
  });
}

/** A repeated creation returns the endpoint without its secret. */
function repeated(endpointId: string): KeyholdError {
  const message = `the endpoint ${endpointId} was already created; its secret cannot be shown again: rotate it`;
  return new KeyholdError("WEBHOOK_ENDPOINT_ALREADY_EXISTS", message);
}

const COLUMNS = {
  endpoint_id: "ENDPOINT ID",
  url: "URL",
  event_types: "EVENTS",
  disable_reason: "DISABLED",
  next_seq: "NEXT SEQ",
  create_time: "CREATED",
};

export async function list(options: RemoteOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  const { webhookEndpoints: endpoints } = await webhookEndpoints.listWebhookEndpoints({});
  await writeList([endpoints], COLUMNS, "no webhook endpoints", options);
}

export async function get(endpointId: string, options: RemoteOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  await writeMessage(await webhookEndpoints.getWebhookEndpoint({ endpointId }), options);
}

type UpdateOptions = FieldOptions & { readonly disable?: true; readonly enable?: true };

export async function update(endpointId: string, options: UpdateOptions): Promise<void> {
  const { endpointUrl: url, event: eventTypes, filter, description, disable, enable } = options;
  const changes = { url, event_types: eventTypes, filter, description, disabled: disable ?? (enable && false) };
  const paths = Object.entries(changes).flatMap(([path, value]) => (value === undefined ? [] : path));
  if (paths.length === 0)
    throw invalidArgument(
      "options",
      "nothing to update; set at least one of --endpoint-url, --event, --filter, --description, --disable, --enable",
    );
  const webhookEndpoint = { endpointId, url, eventTypes, filter, description, disabled: changes.disabled };
  const { webhookEndpoints } = await openRemote(options);
  await writeMessage(await webhookEndpoints.updateWebhookEndpoint({ webhookEndpoint, updateMask: { paths } }), options);
}

export async function remove(endpointId: string, options: RemoteOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  await webhookEndpoints.deleteWebhookEndpoint({ endpointId });
  await writeObject(options.json === true ? {} : { endpoint_id: endpointId, status: "deleted" }, options);
}

type RotateOptions = RemoteOptions & SecretOptions & { readonly gracePeriod?: string };

export async function rotateSecret(endpointId: string, { gracePeriod, ...options }: RotateOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  await outputSecret(options, async () => {
    const answer = await webhookEndpoints.rotateWebhookEndpointSecret({ endpointId, gracePeriod });
    return { secret: answer.secret, answer, record: answer.webhookEndpoint ?? answer };
  });
}
