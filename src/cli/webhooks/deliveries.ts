import { type PageRequest, type PagingOptions, pagesOf } from "../pages.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { restJson, writeList, writeMessage } from "../rest-json.ts";

export async function sendTest(endpointId: string, options: RemoteOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  await writeMessage(await webhookEndpoints.sendTestWebhookEvent({ endpointId }), options);
}

const COLUMNS = {
  delivery_id: "DELIVERY ID",
  seq: "SEQ",
  event_type: "EVENT",
  state: "STATE",
  create_time: "CREATED",
  next_attempt_time: "NEXT ATTEMPT",
  http_status: "HTTP",
  error: "ERROR",
};

export async function list(endpointId: string, options: RemoteOptions & PagingOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  const read = async (page: PageRequest) => {
    const request = { endpointId, ...page };
    const { webhookDeliveries, nextPageToken } = await webhookEndpoints.listWebhookDeliveries(request);
    return [webhookDeliveries, nextPageToken] as const;
  };
  await writeList(pagesOf(read, options), COLUMNS, "no deliveries", options, (delivery) => {
    const [attempt] = delivery.attempts;
    return {
      ...restJson(delivery),
      state: restJson(delivery).state?.toString().replace("WEBHOOK_DELIVERY_STATE_", "") ?? "",
      ...(attempt !== undefined && { http_status: attempt.httpStatus, error: attempt.error }),
    };
  });
}

export async function redeliver(endpointId: string, deliveryId: string, options: RemoteOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  await writeMessage(await webhookEndpoints.redeliverWebhook({ endpointId, deliveryId }), options);
}

type ReplayOptions = RemoteOptions & { readonly fromSeq: bigint };

export async function replay(endpointId: string, { fromSeq: seq, ...options }: ReplayOptions): Promise<void> {
  const { webhookEndpoints } = await openRemote(options);
  await writeMessage(await webhookEndpoints.replayWebhookEvents({ endpointId, seq }), options);
}
