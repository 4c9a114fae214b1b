import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { UsageCountSchema, UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { getKey } from "../../keys/read.ts";
import { pageSizeOf } from "../../paging/page-request.ts";
import { isOfUnits, type UsageCount } from "../../usage/query.ts";
import { parseKeyUsageRequest, parseUsageRequest, queryUsage, readKeyUsage } from "../../usage/usage.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { keyKind } from "./enums.ts";
import { timestamp } from "./key-resources.ts";

const policy = "keyhold:keys.read";

export const usage: ServiceRows<typeof UsageService> = {
  queryUsage: {
    implement:
      ({ usage }) =>
      ({ startTime, endTime, kind, ...request }) => {
        const period = { startTime: dateOf(startTime), endTime: dateOf(endTime) };
        const query = parseUsageRequest(usage, { ...request, ...period, kind: keyKind(kind) });
        return async (principal) => {
          const { items, nextPageToken } = await queryUsage(usage, principal, query);
          const amount = isOfUnits(query.query) ? "units" : "count";
          return { usageCounts: items.map(usageCountIn(amount)), nextPageToken };
        };
      },
    policy,
    keyPage: "VIEW_USAGE",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  getKeyUsage: {
    implement:
      ({ usage, keys }) =>
      ({ startTime, endTime, ...request }) => {
        const query = parseKeyUsageRequest(usage, {
          ...request,
          ...{ startTime: dateOf(startTime), endTime: dateOf(endTime) },
        });
        return async (principal) => {
          await getKey(keys, principal, null, query.keyId);
          const counts = await readKeyUsage(usage, principal, query);
          const total = sum(counts);
          const valid = sum(counts.filter(({ outcome }) => outcome === "VALID"));
          return {
            ...{ keyId: query.keyId, startTime: timestamp(query.startTime), endTime: timestamp(query.endTime) },
            ...{ validCount: valid, rejectedCount: total - valid, usageCounts: counts.map(usageCountIn("count")) },
          };
        };
      },
    policy,
    keyPage: "VIEW_USAGE",
    idempotency: "no side effects",
    keyId: (_, { keyId }) => keyId,
  },
};

function dateOf(time: Timestamp | undefined): Date | undefined {
  return time && timestampDate(time);
}

function sum(counts: readonly UsageCount[]): bigint {
  return BigInt(counts.reduce((total, { count }) => total + count, 0));
}

/** Returns a function that makes a message with the number in this field. */
function usageCountIn(amount: "count" | "units") {
  return ({ time, keyId, actorId, outcome, limit, count }: UsageCount): MessageInitShape<typeof UsageCountSchema> => ({
    startTime: timestamp(time),
    ...{ keyId: keyId ?? "", actorId: actorId ?? "", outcome: outcome ?? "", limit: limit ?? "" },
    [amount]: BigInt(count),
  });
}
