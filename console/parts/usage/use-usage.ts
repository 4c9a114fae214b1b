import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useEffect } from "react";
import { type QueryUsageRequestSchema, type UsageCount, UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";

/** What is counted at a time, and under which name: an outcome, or a limit. */
export interface Point {
  /** Milliseconds. */
  readonly time: number;
  readonly name: string;
  readonly count: number;
}

const MAX_PAGE_SIZE = 1_000;

/** Reads all counts of a query, which has few of each step. */
export function useUsage(request: MessageInitShape<typeof QueryUsageRequestSchema>) {
  const { data, error, refetch, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery(
    UsageService.method.queryUsage,
    { ...request, pageSize: MAX_PAGE_SIZE, pageToken: "" },
    { pageParamKey: "pageToken", getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined },
  );
  const mustContinue = hasNextPage && !isFetching && error === null;
  useEffect(() => {
    if (mustContinue) void fetchNextPage();
  }, [mustContinue, fetchNextPage]);
  const points = hasNextPage ? undefined : data?.pages.flatMap(({ usageCounts }) => usageCounts.map(pointOf));
  return { points, error, refetch };
}

export function pointOf({ startTime, outcome, limit, count, units }: UsageCount): Point {
  return {
    time: startTime === undefined ? 0 : timestampMs(startTime),
    name: outcome || limit,
    count: Number(count + units),
  };
}

/** Returns the sum of counts. */
export function sumOf(points: readonly Point[]): number {
  return points.reduce((sum, { count }) => sum + count, 0);
}
