import { execFile } from "node:child_process";
import { chown, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { chooseAccount, ownAccount } from "../../../src/postgres/embedded/account.ts";
import { findBinaries } from "../../../src/postgres/embedded/binaries.ts";
import { isRoot, keptIn, makeDir, nobody, start, startOwner, succeeds, usedDataDir } from "./support.ts";

const binaries = await findBinaries();

/** A checkout in root's home is out of another user's reach; then root can be one in a namespace alone. */
const reachable = isRoot && (await succeeds(promisify(execFile)(binaries.postgres, ["--version"], nobody)));
const inNamespace = { prefix: ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"] };

/** Hides unshare(1), as in a container that bars it; in a real one there is nothing to hide and no way to do it. */
const hideUnshare = [
  "unshare",
  "--mount",
  "sh",
  "-c",
  'mount --bind /bin/false "$(command -v unshare)" && exec "$@"',
  "sh",
];
const withoutNamespaces = {
  prefix: (await succeeds(promisify(execFile)("unshare", [...hideUnshare.slice(1), "true"]))) ? hideUnshare : [],
};

test("an ordinary user runs the server as it is", async () => {
  const dataDir = await makeDir();
  expect(await chooseAccount({ uid: 1000, dataDir, clusterDir: join(dataDir, "postgres"), binaries })).toBe(ownAccount);
  if (reachable) await chown(dataDir, nobody.uid, nobody.gid);
  const owner = startOwner(dataDir, reachable ? nobody : isRoot ? inNamespace : {});
  expect(await owner.says()).toMatchObject({ pid: expect.any(Number) });
  expect((await stat(join(dataDir, "postgres"))).uid).toBe((await stat(dataDir)).uid);
});

if (isRoot)
  describe("root", () => {
    test("runs the server on a folder that no one else can enter", async () => {
      const server = await start(await usedDataDir());
      expect(await keptIn(server.url)).toContain(1);
    });

    test("becomes the owner of the cluster where that is another user", async () => {
      const dataDir = await usedDataDir();
      await giveTo("65534:65534", dataDir);
      onTestFinished(() => giveTo("0:0", dataDir));
      const starting = start(dataDir);
      if (!reachable) return expect(starting).rejects.toThrow("does not run as root");
      const server = await starting;
      expect((await stat(`/proc/${server.pid}`)).uid).toBe(nobody.uid);
      expect(await keptIn(server.url)).toContain(1);
    });

    test("becomes nobody for a new cluster where namespaces are barred", async () => {
      const dataDir = await makeDir();
      const said = await startOwner(dataDir, withoutNamespaces).says();
      if (!reachable) return expect(said.error).toContain("does not run as root");
      expect((await stat(`/proc/${said.pid}`)).uid).toBe(nobody.uid);
      expect((await stat(join(dataDir, "postgres"))).uid).toBe(nobody.uid);
    });

    test("is told to give its cluster away where namespaces are barred", async () => {
      const dataDir = await usedDataDir();
      const said = await startOwner(dataDir, withoutNamespaces).says();
      expect(said.error).toContain(`chown -R 65534:65534 '${join(dataDir, "postgres")}'`);
    });

    test("is told when the other user cannot enter the folder", async () => {
      const dataDir = join(await makeDir(), "data");
      const clusterDir = join(dataDir, "postgres");
      await mkdir(clusterDir, { recursive: true });
      await chown(clusterDir, nobody.uid, nobody.gid);
      const request = { uid: 0, dataDir, clusterDir, binaries };
      await expect(chooseAccount(request)).rejects.toThrow(/does not run as root.*cannot enter/);
    });
  });

async function giveTo(owner: string, dataDir: string): Promise<void> {
  await promisify(execFile)("chown", ["-R", owner, join(dataDir, "postgres")]);
}
