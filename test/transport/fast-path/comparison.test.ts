import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CASES } from "./cases.ts";
import { DIFFERENCES, type Outcome } from "./differences.ts";
import { send, WAYS } from "./protocols.ts";
import { type Subject, startSubject } from "./subjects.ts";

let fast: Subject;
let stock: Subject;

beforeAll(async () => {
  fast = await startSubject({});
  stock = await startSubject({ fastPath: false });
});
afterAll(() => Promise.all([fast.close(), stock.close()]));

const rows = WAYS.flatMap((way) =>
  CASES.filter(({ ways = () => true }) => ways(way)).map((one) => ({ title: `${way.name}: ${one.name}`, way, ...one })),
).map((row, index) => ({ ...row, id: `request-${index}` }));

describe("the fast path answers like Fastify with Connect's handler:", () => {
  test.for(rows.map((row) => [row.title, row] as const))("%s", async ([title, { id, way, request, ...expected }]) => {
    const { isTaken = () => true } = expected;
    const ask = async (subject: Subject): Promise<Outcome> => {
      const seen = await send(subject, way, { id, ...request(way) });
      return { seen, log: seen.some(({ headers }) => headers["x-request-id"] === id) ? await subject.log(id) : [] };
    };
    const before = fast.passedOn();
    const [ours, theirs] = [await ask(fast), await ask(stock)];
    // The fast path declines the last request of a connection, and the first one of a connection that was handed over.
    const others = way.isHandedOver === true ? 2 : 1;
    const passedOn = fast.passedOn() - before - (way.http === 1 ? others : 0);
    expect(passedOn).toBe(isTaken(way) ? 0 : 1);
    const difference = DIFFERENCES.find(({ title: pattern }) => pattern.test(title));
    if (difference === undefined) return expect(ours).toEqual(theirs);
    expect({ ours, theirs }).toMatchObject(difference.expected);
    expect(ours).not.toEqual(theirs);
  });
});

test("every allowed difference has a case", () => {
  const idle = DIFFERENCES.filter(({ title: pattern }) => !rows.some(({ title }) => pattern.test(title)));
  expect(idle).toEqual([]);
});
