import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CASES } from "./cases.ts";
import { DIFFERENCES, type Outcome } from "./differences.ts";
import { send, WAYS } from "./protocols.ts";
import { REST_CASES } from "./rest-cases.ts";
import { type Subject, startSubject } from "./subjects.ts";

let lane: Subject;
let stock: Subject;

beforeAll(async () => {
  lane = await startSubject({});
  stock = await startSubject({ lane: false });
});
afterAll(() => Promise.all([lane.close(), stock.close()]));

const rows = WAYS.flatMap((way) =>
  [...CASES, ...REST_CASES]
    .filter(({ ways = () => true }) => ways(way))
    .map((one) => ({ title: `${way.name}: ${one.name}`, way, ...one })),
).map((row, index) => ({ ...row, id: `request-${index}` }));

describe("the lane answers as Fastify with Connect's handler does", () => {
  test.for(rows.map((row) => [row.title, row] as const))("%s", async ([title, { id, way, request, ...expected }]) => {
    const { isTaken = true, isUnseen = false } = expected;
    const ask = async (subject: Subject): Promise<Outcome> => {
      const seen = await send(subject, way, { id, ...request(way) });
      return { seen, log: seen.some(({ headers }) => headers["x-request-id"] === id) ? await subject.log(id) : [] };
    };
    const before = lane.passedOn();
    const [ours, theirs] = [await ask(lane), await ask(stock)];
    // The last request of a connection is passed on.
    const passedOn = lane.passedOn() - before - (way.http === 1 ? 1 : 0);
    expect(passedOn).toBe(isTaken || isUnseen ? 0 : 1);
    const difference = DIFFERENCES.find(({ title: pattern }) => pattern.test(title));
    if (difference === undefined) return expect(ours).toEqual(theirs);
    expect({ ours, theirs }).toMatchObject(difference.expected);
    expect(ours).not.toEqual(theirs);
  });
});

test("every difference that is allowed has a case", () => {
  const idle = DIFFERENCES.filter(({ title: pattern }) => !rows.some(({ title }) => pattern.test(title)));
  expect(idle).toEqual([]);
});
