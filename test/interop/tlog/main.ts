import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { bundleOf, entriesOf } from "../../../src/audit/tree/entry.ts";
import { tilePath } from "../../../src/audit/tree/paths.ts";
import { run } from "../../support/programs/run.ts";
import type { Json } from "../../support/rest.ts";

/**
 * Copies the tree of the audit log over HTTP, and has it checked by other implementations of tlog-tiles: as it is, and with what an owner of the
 * database could change. Reads KEYHOLD_URL, KEYHOLD_TOKEN, and TLOG, the program of this folder; prints TAP.
 */

const { KEYHOLD_URL: baseUrl = "", KEYHOLD_TOKEN: token = "", TLOG: program = "" } = process.env;
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

/** More than two tiles. */
const EVENTS = 600;

const requests = Array.from({ length: EVENTS }, (_, place) => ({
  name: "a key",
  actor_id: "actor_1",
  raw_key: `tlog-${place}-${Date.now()}-0123456789abcdef`,
}));
await call("/v2alpha1/admin/importedApiKeys:batchCreate", { method: "POST", body: JSON.stringify({ requests }) });
const { verifier_key: verifierKey }: Json = await (await call("/v2alpha1/admin/auditCheckpoint")).json();
const copy = await copyTree();
const server = createServer(({ url = "" }, response) => {
  const content = copy.get(url.slice(1));
  response.writeHead(content === undefined ? 404 : 200).end(content);
}).listen(0, "127.0.0.1");
await once(server, "listening");
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

const ENTRIES = tilePath("entries", 1);

/** Each change of the copy, which must be found. */
const CHANGES: Readonly<Record<string, () => void>> = {
  "a changed event": () =>
    changeEntries((entries) => entries.with(7, Buffer.from(String(entries[7]).replace("key.imported", "key.issued")))),
  "reordered events": () =>
    changeEntries((entries) => [...entries.slice(0, 7), ...entries.slice(7, 9).reverse(), ...entries.slice(9)]),
  "a removed event": () => changeEntries((entries) => entries.toSpliced(7, 1)),
  "a changed hash of an event": () => flipBit(tilePath(0, 1)),
  "a changed hash of a tile": () => flipBit([...copy.keys()].find((path) => path.startsWith("tile/1/")) ?? ""),
  "a removed tail": () => copy.delete([...copy.keys()].findLast((path) => path.startsWith("tile/entries/")) ?? ""),
  "a changed checkpoint": () =>
    copy.set("checkpoint", Buffer.from(String(copy.get("checkpoint")).replace(/^.*\n/, "other\n"))),
};

let count = 0;
for (const checker of ["sumdb", "fsck"]) {
  report(`${checker} accepts the tree`, await check(checker), "");
  for (const [name, change] of Object.entries(CHANGES)) {
    const before = new Map(copy);
    change();
    const found = await check(checker);
    for (const [path, content] of before) copy.set(path, content);
    report(`${checker} finds ${name}`, found === "" ? "no error" : "", "");
  }
}
console.info(`1..${count}`);
server.close();

function report(name: string, found: string, expected: string): void {
  console.info(`${found === expected ? "ok" : "not ok"} ${++count} - ${name}`);
  if (found !== expected) console.info(`  # ${found.replaceAll("\n", " ")}`);
}

/** Returns the error; empty if the tree is accepted. */
async function check(checker: string): Promise<string> {
  const { status, stderr } = await run({ program, args: [checker, address, verifierKey], cwd: import.meta.dirname });
  return status === 0 ? "" : stderr;
}

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(`${baseUrl}${path}`, { ...init, headers });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

/** Returns every resource of the tree, by its path. */
async function copyTree(): Promise<Map<string, Buffer>> {
  const read = async (path: string) => Buffer.from(await (await call(`/v2alpha1/audit/${path}`)).bytes());
  const checkpoint = await read("checkpoint");
  const size = Number(String(checkpoint).split("\n")[1]);
  const paths: string[] = [];
  for (let level = 0, left = size; left > 0; level++, left = Math.floor(left / 256))
    for (let index = 0; index * 256 < left; index++) {
      const width = Math.min(left - index * 256, 256);
      paths.push(tilePath(level, index, width), ...(level === 0 ? [tilePath("entries", index, width)] : []));
    }
  const tiles = await Promise.all(paths.map(async (path) => [path, await read(path)] as const));
  return new Map([["checkpoint", checkpoint], ...tiles]);
}

function changeEntries(change: (entries: Uint8Array[]) => Uint8Array[]): void {
  copy.set(ENTRIES, bundleOf(change(entriesOf(copy.get(ENTRIES) ?? Buffer.of()))));
}

function flipBit(path: string): void {
  const content = Buffer.from(copy.get(path) ?? Buffer.of());
  content[0] = (content[0] ?? 0) ^ 1;
  copy.set(path, content);
}
