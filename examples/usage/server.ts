// Shows a customer what they used. Reads KEYHOLD_URL, KEYHOLD_TOKEN, PORT, ACTOR_ID and LIMIT.
import { createServer } from "node:http";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { createKeyholdClient } from "@keyhold/client";

const { KEYHOLD_URL: baseUrl = "http://127.0.0.1:4420", KEYHOLD_TOKEN: token, PORT = "3000" } = process.env;
// In a real backend: the customer of the session.
const { ACTOR_ID: actorId = "user_42" } = process.env;
const { LIMIT: limit = "tokens" } = process.env;

const keyhold = createKeyholdClient({ baseUrl, token });

const DAY = 86_400_000;
const DAYS = 30;

const firstDay = () => (Math.floor(Date.now() / DAY) - DAYS + 1) * DAY;

interface Day {
  readonly date: string;
  valid: bigint;
  rejected: bigint;
}

/** Returns the last 30 days, also those without usage. */
async function readDays(): Promise<Day[]> {
  const start = firstDay();
  const days = new Map<string, Day>();
  for (let time = start; time < start + DAYS * DAY; time += DAY) {
    const date = new Date(time).toISOString().slice(0, 10);
    days.set(date, { date, valid: 0n, rejected: 0n });
  }
  const query = { actorId, groupBy: ["outcome"], step: "1d", startTime: timestampFromDate(new Date(start)) };
  let pageToken = "";
  do {
    const page = await keyhold.usage.queryUsage({ ...query, pageSize: 1000, pageToken });
    for (const { startTime, outcome, count } of page.usageCounts) {
      const day = startTime && days.get(timestampDate(startTime).toISOString().slice(0, 10));
      if (day !== undefined) day[outcome === "VALID" ? "valid" : "rejected"] += count;
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return [...days.values()];
}

/** Returns the units of the limit in the same days. */
async function readUnits(): Promise<bigint> {
  const query = { actorId, limit, startTime: timestampFromDate(new Date(firstDay())) };
  const { usageCounts } = await keyhold.usage.queryUsage(query);
  return usageCounts[0]?.units ?? 0n;
}

function renderPage(days: readonly Day[], units: bigint): string {
  const most = days.reduce((max, { valid, rejected }) => (valid + rejected > max ? valid + rejected : max), 1n);
  const height = (count: bigint) => Number((count * 1000n) / most) / 10;
  const bars = days.map(({ date, valid, rejected }, index) => {
    const [good, bad] = [height(valid), height(rejected)];
    return `<g><title>${date}: ${valid} requests, ${rejected} rejected</title>
      <rect class="valid" x="${index * 10}" y="${100 - good}" width="8" height="${good}"/>
      <rect class="rejected" x="${index * 10}" y="${100 - good - bad}" width="8" height="${bad}"/></g>`;
  });
  const total = days.reduce((sum, { valid }) => sum + valid, 0n);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Your usage</title>
    <style>body{font-family:sans-serif;max-width:40rem;margin:2rem auto}svg{width:100%}.valid{fill:#2a7}.rejected{fill:#c33}</style>
    <h1>Your usage</h1><p>${total} requests and ${units} ${limit} in the last ${DAYS} days</p>
    <svg viewBox="0 0 ${DAYS * 10} 100" role="img" aria-label="Requests per day">${bars.join("")}</svg></html>`;
}

createServer(async (_, response) => {
  try {
    const page = renderPage(await readDays(), await readUnits());
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
  } catch (error) {
    console.error(error);
    response.writeHead(503).end("The usage is not available. Try again later.");
  }
}).listen(Number(PORT), "127.0.0.1");
