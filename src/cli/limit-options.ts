import { Option } from "commander";
import { OutagePolicy, QuotaPeriod, RateLimitEnforcement } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { invalidArgument } from "../domain/errors.ts";

/** A rate limit of a request. */
export type RateLimitOption = ReturnType<typeof parseRateLimit>;

/** A quota of a request. */
export type QuotaOption = ReturnType<typeof parseQuota>;

/** Returns the repeatable option `--rate-limit`. */
export function rateLimitOption(description: string): Option {
  return new Option(
    "--rate-limit <limit...>",
    `${description}, such as requests=60/1m or exports=10/1h,on-demand`,
  ).argParser((text: string, earlier: RateLimitOption[] = []) => [...earlier, parseRateLimit(text)]);
}

/** Returns the repeatable option `--quota`. */
export function quotaOption(description: string): Option {
  return new Option("--quota <quota...>", `${description}, such as monthly=10000/month`).argParser(
    (text: string, earlier: QuotaOption[] = []) => [...earlier, parseQuota(text)],
  );
}

const RATE_LIMIT = /^([^=]+)=(\d{1,10})\/([^,]+)((?:,[^,]+)*)$/;
const RATE_LIMIT_FORM =
  "must have the form name=quota/window, and then ,burst=N ,shadow ,on-demand or ,on-outage=allow";

function parseRateLimit(text: string) {
  const [, name, quota, window, flags = ""] = RATE_LIMIT.exec(text) ?? [];
  if (name === undefined || window === undefined) throw invalidArgument("--rate-limit", RATE_LIMIT_FORM);
  let burst: number | undefined;
  let [enforcement, onDemand, onOutage] = [RateLimitEnforcement.ENFORCED, false, OutagePolicy.DENY];
  for (const flag of flags.split(",").slice(1)) {
    const size = /^burst=(\d{1,10})$/.exec(flag)?.[1];
    if (size !== undefined) burst = Number(size);
    else if (flag === "shadow") enforcement = RateLimitEnforcement.SHADOW;
    else if (flag === "on-demand") onDemand = true;
    else if (flag === "on-outage=allow") onOutage = OutagePolicy.ALLOW;
    else throw invalidArgument("--rate-limit", RATE_LIMIT_FORM);
  }
  return { name, quota: Number(quota), window, burst, enforcement, onDemand, onOutage };
}

const PERIODS: ReadonlyMap<string, QuotaPeriod> = new Map([
  ["day", QuotaPeriod.DAY],
  ["week", QuotaPeriod.WEEK],
  ["month", QuotaPeriod.MONTH],
  ["year", QuotaPeriod.YEAR],
]);

function parseQuota(text: string) {
  const [, name, limit, unit = ""] = /^([^=]+)=(\d{1,10})\/(\w+)$/.exec(text) ?? [];
  const period = PERIODS.get(unit);
  if (name === undefined || period === undefined)
    throw invalidArgument(
      "--quota",
      "must have the form name=limit/period, with day, week, month or year as the period",
    );
  return { name, limit: Number(limit), period };
}
