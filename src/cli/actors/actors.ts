import { QuotaPeriod } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import type { QuotaOption, RateLimitOption } from "../limit-options.ts";
import { type AdjustmentOptions, deltaOf } from "../options.ts";
import { writeObject } from "../output.ts";
import { type PageRequest, type PagingOptions, pagesOf } from "../pages.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { restJson, writeList, writeMessage } from "../rest-json.ts";

const COLUMNS = {
  actor_id: "ACTOR ID",
  rate_limits: "RATE LIMITS",
  quotas: "QUOTAS",
  create_time: "CREATED",
  update_time: "UPDATED",
};

export async function list(options: RemoteOptions & PagingOptions & { readonly filter?: string }): Promise<void> {
  const { filter } = options;
  const client = (await openRemote(options)).actors;
  const read = async (page: PageRequest) => {
    const { actors, nextPageToken } = await client.listActors({ ...page, filter });
    return [actors, nextPageToken] as const;
  };
  await writeList(
    pagesOf(read, options),
    COLUMNS,
    filter === undefined ? "no actors have limits" : "no actors match",
    options,
    (actor) => ({
      ...restJson(actor),
      rate_limits: actor.rateLimits.map(({ name, quota, window }) => `${name}=${quota}/${window}`),
      quotas: actor.quotas.map(({ name, limit, period }) => `${name}=${limit}/${QuotaPeriod[period].toLowerCase()}`),
    }),
  );
}

export async function get(actorId: string, options: RemoteOptions): Promise<void> {
  const { actors } = await openRemote(options);
  await writeMessage(await actors.getActor({ actorId }), options);
}

interface UpdateOptions extends RemoteOptions {
  readonly rateLimit?: RateLimitOption[];
  readonly clearRateLimits?: true;
  readonly quota?: QuotaOption[];
  readonly clearQuotas?: true;
}

export async function update(actorId: string, options: UpdateOptions): Promise<void> {
  const { rateLimit: rateLimits, clearRateLimits, quota: quotas, clearQuotas } = options;
  const paths: string[] = [];
  if (rateLimits !== undefined || clearRateLimits) paths.push("rate_limits");
  if (quotas !== undefined || clearQuotas) paths.push("quotas");
  if (paths.length === 0)
    throw invalidArgument(
      "options",
      "nothing to update; set at least one of --rate-limit, --quota, or one of --clear-…",
    );
  const { actors } = await openRemote(options);
  await writeMessage(
    await actors.updateActor({ actor: { actorId, rateLimits, quotas }, updateMask: { paths } }),
    options,
  );
}

export async function adjustQuota(
  actorId: string,
  name: string,
  options: RemoteOptions & AdjustmentOptions,
): Promise<void> {
  const delta = deltaOf(options);
  const { actors } = await openRemote(options);
  await writeMessage(await actors.adjustActorQuota({ actorId, name, delta }), options);
}

export async function remove(actorId: string, options: RemoteOptions): Promise<void> {
  const { actors } = await openRemote(options);
  await actors.deleteActor({ actorId });
  await writeObject(options.json === true ? {} : { actor_id: actorId, status: "deleted" }, options);
}
