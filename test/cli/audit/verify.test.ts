import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { useKeysCommand } from "../keys/keys-command.ts";

const { suite, keyhold } = useKeysCommand();

const audit = (...args: string[]) => keyhold(["audit", ...args]);

/** Records this number of events. */
async function record(count: number): Promise<void> {
  await suite.sql`INSERT INTO used_root_secrets (digest_key_id) SELECT gen_random_uuid()::text FROM generate_series(1, ${count})`;
}

async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await audit(...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** Keeps the current checkpoint in a file. */
async function keepCheckpoint(): Promise<{ file: string; size: number }> {
  const note = await printed("checkpoint");
  const file = join(await mkdtemp(join(tmpdir(), "keyhold-checkpoint-")), "checkpoint");
  await writeFile(file, note);
  return { file, size: Number(note.split("\n")[1]) };
}

let kept: { file: string; size: number };
beforeAll(async () => {
  await record(600);
  kept = await keepCheckpoint();
  await record(50);
});

test("checkpoint prints a signed note, and the key that verifies it", async () => {
  const note = await printed("checkpoint");
  expect(note).toMatch(/^keyhold\/[\da-f-]{36}\n\d+\n[\w+/]{43}=\n\n— keyhold\/[\da-f-]{36} [\w+/]{90,92}={0,2}\n$/);
  const key = await printed("checkpoint", "--verifier-key");
  expect(key).toMatch(/^keyhold\/[\da-f-]{36}\+[\da-f]{8}\+[\w+/]{44}\n$/);
  expect(JSON.parse(await printed("checkpoint", "--json"))).toEqual({ checkpoint: note, verifier_key: key.trim() });
});

test("a log is verified against its checkpoint and kept ones", async () => {
  const key = (await printed("checkpoint", "--verifier-key")).trim();
  const now = await keepCheckpoint();
  expect(await printed("verify", "--verifier-key", key, "--checkpoint", kept.file, now.file)).toBe(
    [
      `The log has the ${now.size} events of its checkpoint, unchanged and in their order.`,
      ` Its first ${kept.size} are those of ${kept.file}.`,
      ` Its first ${now.size} are those of ${now.file}.\n`,
    ].join("\n"),
  );
  expect(JSON.parse(await printed("verify", "--json"))).toEqual({
    ...{ origin: key.split("+")[0], size: expect.any(Number), first_seq: 0, erased: 0, checkpoints: 0 },
  });
});

const EVENT = 300;

/** Behind the end of any log. */
const FAR = 1_000_000_000;

const flipBit = (level: number, index: number) =>
  `UPDATE audit_tiles SET hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 1) WHERE level = ${level} AND index = ${index}`;

/** Statements of an owner of the database that change the log, those that repair it, and what `verify` says. */
const TAMPERING: readonly (readonly [what: string, change: string, repair: string, message: RegExp])[] = [
  ...(
    [
      ["caller", `call = call || '{"caller": "x"}'`, "call = call || jsonb_build_object('caller', caller)"],
      ["action", "action = 'key.revoked'", "action = 'root_secret.created'"],
      ["time", "time = time - interval '1 ms'", "time = time + interval '1 ms'"],
      ["resource", "resource_id = resource_id || 'x'", "resource_id = left(resource_id, -1)"],
      ["changes", `after = after || '{"x": 1}'`, "after = after - 'x'"],
      [
        "salt",
        "salt = ('1' || substr(salt::text, 2))::uuid, actor_id = salt::text",
        "salt = actor_id::uuid, actor_id = NULL",
      ],
    ] as const
  ).map(
    ([column, change, repair]) =>
      [
        `the ${column} of an event is changed`,
        `UPDATE audit_events SET ${change} WHERE seq = ${EVENT}`,
        `UPDATE audit_events SET ${repair} WHERE seq = ${EVENT}`,
        /^keyhold: event 300 is not the one that the tree has: it was changed, replaced or moved\n$/,
      ] as const,
  ),
  [
    "an event is removed",
    `UPDATE audit_events SET seq = seq + ${FAR} WHERE seq = ${EVENT}`,
    `UPDATE audit_events SET seq = seq - ${FAR} WHERE seq > ${FAR}`,
    /^keyhold: event 300 is missing\n$/,
  ],
  [
    "the tail of the log is removed",
    `UPDATE audit_events SET seq = seq + ${FAR} WHERE seq >= 640`,
    `UPDATE audit_events SET seq = seq - ${FAR} WHERE seq > ${FAR}`,
    /^keyhold: event 640 is missing\n$/,
  ],
  [
    "events are reordered",
    "UPDATE audit_events SET seq = CASE seq WHEN 400 THEN -401 ELSE -400 END WHERE seq IN (400, 401); UPDATE audit_events SET seq = -seq WHERE seq < 0",
    "UPDATE audit_events SET seq = CASE seq WHEN 400 THEN -401 ELSE -400 END WHERE seq IN (400, 401); UPDATE audit_events SET seq = -seq WHERE seq < 0",
    /^keyhold: event 400 is not the one that the tree has: it was changed, replaced or moved\n$/,
  ],
  [
    "a hash of an entry is changed",
    flipBit(0, 1),
    flipBit(0, 1),
    /^keyhold: event 256 is not the one that the tree has: it was changed, replaced or moved\n$/,
  ],
  [
    "a hash of the second level is changed",
    flipBit(1, 0),
    flipBit(1, 0),
    /^keyhold: hash 0 of tile\/1\/000.p\/2 was changed\n$/,
  ],
  [
    "the checkpoint is changed",
    "UPDATE audit_tree SET checkpoint = replace(checkpoint, 'keyhold/', 'keyhold-')",
    "UPDATE audit_tree SET checkpoint = replace(checkpoint, 'keyhold-', 'keyhold/')",
    /^keyhold: the checkpoint of the server is not signed with the key that the server states\n$/,
  ],
];

test.each(TAMPERING)("verify fails if %s", async (_, change, repair, message) => {
  await suite.sql.unsafe(change);
  const { code, stdout, stderr } = await audit("verify");
  await suite.sql.unsafe(repair);
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(message) });
});

/** An owner of the database can make a log with other events, and its tree. */
test.each([
  [
    "ends before a checkpoint that was kept",
    ([origin, , root]: string[]) => [origin, "100000", root],
    /^keyhold: events were removed from the end of the log: it has \d+, and had 100000 at \S+\n$/,
  ],
  [
    "does not begin with the events of a checkpoint that was kept",
    ([origin, size]: string[]) => [origin, size, "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="],
    /^keyhold: the first \d+ events are not those of \S+\n$/,
  ],
  [
    "is not that of a checkpoint that was kept",
    ([, size, root]: string[]) => ["keyhold/other", size, root],
    /^keyhold: \S+ is a checkpoint of keyhold\/other, and this log is keyhold\/\S+\n$/,
  ],
])("verify fails if the log %s", async (_, change, message) => {
  const [origin = "", size = "", root = "", ...rest] = (await printed("checkpoint")).split("\n");
  await writeFile(kept.file, [...change([origin, size, root]), ...rest].join("\n"));
  const { code, stdout, stderr } = await audit("verify", "--checkpoint", kept.file);
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(message) });
});

test("verify fails if another key has signed", async () => {
  const other = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
  expect(await audit("verify", "--verifier-key", other)).toMatchObject({
    ...{
      code: 1,
      stdout: "",
      stderr: "keyhold: the checkpoint of the server is not signed with the key of --verifier-key\n",
    },
  });
  expect(await audit("verify", "--verifier-key", "x")).toMatchObject({ code: 2 });
});

test("the log is verified after all that", async () => {
  expect((await audit("verify")).code).toBe(0);
});

test("a log with erased events is verified, and one with others that look like it is not", async () => {
  const [row] =
    await suite.sql`SELECT audit_erase('caller', caller)::int AS erased FROM audit_events WHERE seq = ${EVENT}`;
  expect(row?.erased).toBeGreaterThan(600);
  const { erased } = JSON.parse(await printed("verify", "--json"));
  expect(erased).toBe(row?.erased);
  expect(await printed("get", String(EVENT))).not.toContain("caller");
  const forge = async (change: string, message: string) => {
    await suite.sql.unsafe(`UPDATE audit_events SET ${change} WHERE seq = (SELECT max(seq) FROM audit_events)`);
    expect(await audit("verify")).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
  };
  await record(1);
  await printed("checkpoint");
  await forge("salt = NULL", "has no salt, but it was not erased");
  await forge(
    `after = NULL, actor_id = NULL, resource_id = NULL, caller = '', call = '{"caller": ""}'`,
    `${erased + 1} events have no content, and the log has the erasure of ${erased} (audit.erased)`,
  );
  await suite.sql`SELECT audit_erase('caller', caller) FROM audit_events WHERE action = 'key.issued' LIMIT 1`;
});

test("a pruned log is verified against a checkpoint from before, and one that lost its beginning is not", async () => {
  const before = await keepCheckpoint();
  await suite.sql`SELECT audit_prune(now() + interval '1 hour', 300)`;
  const text = await printed("verify", "--checkpoint", before.file);
  expect(text).toContain("Of the first 256, which were pruned, only the hashes are left.");
  expect(text).toContain(`Its first ${before.size} are those of ${before.file}.`);
  for (const [seq, message] of [
    [512, "the events before 512 are missing, and the log has no event audit.pruned about them"],
    [513, "event 512 is missing"],
  ] as const) {
    await suite.sql`DELETE FROM audit_events WHERE seq < ${seq}`;
    expect(await audit("verify")).toMatchObject({ code: 1, stdout: "", stderr: `keyhold: ${message}\n` });
  }
});
