import { execFile, spawn } from "node:child_process";
import { chmod, chown, link, mkdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { findBinaries } from "../../src/embedded-postgres/binaries.ts";
import { chooseOsUsers, ownOsUser } from "../../src/embedded-postgres/os-user.ts";
import { changeOwnerOfTree } from "../../src/embedded-postgres/ownership.ts";
import { runProgram } from "../../src/embedded-postgres/process.ts";
import {
  clientOf,
  isRoot,
  keptIn,
  makeDir,
  move,
  nobody,
  start,
  startOwner,
  succeeds,
  usedDataDir,
} from "./support.ts";

const run = promisify(execFile);
const binaries = await findBinaries();
const dedicated = { uid: 65530, gid: 65530 };

/** Another user cannot read a checkout in root's home, except in a mount namespace that root creates. */
const reachable = isRoot && (await succeeds(run(binaries.postgres, ["--version"], nobody)));
const inNamespace = { prefix: ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"] };

/** Like in most containers: no namespaces, and no access to the processes of others. */
const asInContainer = {
  prefix: ["setpriv", "--bounding-set=-sys_admin,-sys_ptrace", "--inh-caps=-sys_admin,-sys_ptrace", "--"],
};

test("an unprivileged user runs the server without changes", async () => {
  const dataDir = await makeDir();
  expect(await chooseOsUsers({ uid: 1000, dataDir, clusterDir: join(dataDir, "postgres"), binaries })).toBe(ownOsUser);
  if (reachable) await chown(dataDir, nobody.uid, nobody.gid);
  const owner = startOwner(dataDir, reachable ? nobody : isRoot ? inNamespace : {});
  expect(await owner.nextOutput()).toMatchObject({ pid: expect.any(Number) });
  expect((await stat(join(dataDir, "postgres"))).uid).toBe((await stat(dataDir)).uid);
});

if (isRoot)
  describe("root", () => {
    const places = [
      ["any", "data"],
      ["a private", "private/data"],
    ] as const;

    test.each(places)("COPY … TO PROGRAM of a superuser has no root privileges, in %s folder", async (_, path) => {
      const top = await makeDir();
      await mkdir(join(top, "private"), { mode: 0o700 });
      const dataDir = await move(await usedDataDir(), join(top, path));
      const secret = join(dataDir, "root-secret");
      await writeFile(secret, "secret", { mode: 0o600 });
      onTestFinished(() => rm(secret, { force: true }));
      const server = await start(dataDir);
      const written = join(homedir(), `keyhold-test-${process.pid}`);
      onTestFinished(() => rm(written, { force: true }));
      const sql = clientOf(server.superuserUrl);
      onTestFinished(() => sql.end());
      const attempt = (command: string) => sql.unsafe(`COPY (SELECT 'x') TO PROGRAM '${command}'`);
      await attempt("cat > /dev/null");
      await expect(attempt("cat /etc/shadow")).rejects.toThrow("failed");
      await expect(attempt(`cat > "${written}"`)).rejects.toThrow("failed");
      await expect(attempt(`cat "${secret}"`)).rejects.toThrow("failed");
      await expect(attempt(`cat > "${join(dataDir, "planted")}"`)).rejects.toThrow("failed");
      await expect(stat(written)).rejects.toThrow("ENOENT");
    });

    test("runs the server as a dedicated user, without groups and capabilities", async () => {
      const server = await start(await usedDataDir());
      const status = await readFile(`/proc/${server.pid}/status`, "utf8");
      expect(status).toMatch(/^Uid:\t65530\t65530\t65530\t65530\nGid:\t65530\t65530\t65530\t65530$/m);
      expect(status).toMatch(/^Groups:\s*$/m);
      expect(status).toMatch(/^CapPrm:\t0+\nCapEff:\t0+$/m);
      expect(await readFile(`/proc/${server.pid}/uid_map`, "utf8")).toBe(await readFile("/proc/self/uid_map", "utf8"));
      expect(await keptIn(server.url)).toContain(1);
    });

    const remains = [
      ["a cluster of an earlier release", "."],
      ["a cluster whose change of owner was interrupted", ". pg_wal base"],
      ["files restored by root", "PG_VERSION pg_wal"],
    ] as const;

    test.each(remains)("takes ownership of %s", async (_, ofRoot) => {
      const dataDir = await usedDataDir();
      const clusterDir = join(dataDir, "postgres");
      await run("sh", ["-c", `cd "$1" && chown ${ofRoot === "." ? "-R" : ""} root ${ofRoot}`, "sh", clusterDir]);
      const lines: string[] = [];
      const server = await start(dataDir, { log: (level, message) => lines.push(`${level} ${message}`) });
      expect(lines[0]).toMatch(/^info changed the owner of \d+ files in .* to user 65530$/);
      expect(await keptIn(server.url)).toContain(1);
      expect((await run("find", [clusterDir, "!", "-uid", "65530"])).stdout).toBe("");
    });

    test("follows no link when it changes ownership", async () => {
      const dir = await makeDir();
      const [cluster, outside] = [join(dir, "cluster"), join(dir, "outside")];
      await Promise.all([mkdir(cluster), mkdir(outside)]);
      await writeFile(join(cluster, "file"), "");
      await writeFile(join(outside, "secret"), "");
      await symlink(join(outside, "secret"), join(cluster, "symbolic"));
      await symlink(outside, join(cluster, "folder"));
      await link(join(outside, "secret"), join(cluster, "hard"));
      expect(await changeOwnerOfTree(cluster, { prefix: [], ids: {}, owner: dedicated })).toBe(2);
      const owners = ["cluster", "cluster/file", "outside", "outside/secret"].map((path) => stat(join(dir, path)));
      expect((await Promise.all(owners)).map(({ uid }) => uid)).toEqual([65530, 65530, 0, 0]);
    });

    test("does not enter a folder that is replaced by a link while it changes ownership", async () => {
      const dir = await makeDir();
      const [cluster, outside, base] = [join(dir, "cluster"), join(dir, "outside"), join(dir, "cluster/base")];
      await Promise.all([mkdir(base, { recursive: true }), mkdir(outside)]);
      await writeFile(join(outside, "file"), "");
      await writeFile(join(base, "file"), "");
      const swap = `while :; do mv "$2" "$2.moved"; ln -s "$1" "$2"; rm "$2"; mv "$2.moved" "$2"; done`;
      const attacker = spawn("sh", ["-c", swap, "sh", outside, base], { stdio: "ignore" });
      onTestFinished(() => void attacker.kill("SIGKILL"));
      for (let round = 0; round < 200; round++) {
        await changeOwnerOfTree(cluster, { prefix: [], ids: {}, owner: dedicated });
        expect((await stat(join(outside, "file"))).uid).toBe(0);
        await chown(cluster, 0, 0);
      }
    });

    test("takes ownership of a cluster that belongs to another user", async () => {
      const dataDir = await usedDataDir();
      await giveTo("65534:65534", dataDir);
      onTestFinished(() => giveTo("65530:65530", dataDir));
      const server = await start(dataDir);
      expect((await stat(`/proc/${server.pid}`)).uid).toBe(nobody.uid);
      expect(await keptIn(server.url)).toContain(1);
    });

    test("needs no namespace in a container, and another command finds the server", async () => {
      const dataDir = await makeDir();
      const output = await startOwner(dataDir, asInContainer).nextOutput();
      if (!reachable) return expect(output.error).toContain("cannot run as root");
      expect((await stat(`/proc/${output.pid}`)).uid).toBe(dedicated.uid);
      expect((await stat(join(dataDir, "postgres"))).uid).toBe(dedicated.uid);
      expect((await startOwner(dataDir, asInContainer).nextOutput()).error).toContain("in use by process");
    });

    test("runs programs below a folder that a strict umask made private to root", async () => {
      const dataDir = await makeDir();
      const programs = join(await makeDir(), "private", "programs");
      await mkdir(dirname(programs), { mode: 0o700 });
      await run("cp", ["-r", dirname(dirname(binaries.postgres)), programs]);
      await run("chmod", ["-R", "go-rwx", programs]);
      const copied = { initdb: join(programs, "bin/initdb"), postgres: join(programs, "bin/postgres") };
      const account = await chooseOsUsers({ uid: 0, dataDir, clusterDir: join(dataDir, "postgres"), binaries: copied });
      await runProgram(account.server, [copied.initdb, "--version"], "");
      await runProgram(account.initializer, [copied.initdb, "--version"], "");
    });

    test("reports the remedy if another user cannot enter the folder and namespaces are not allowed", async () => {
      const dataDir = join(await makeDir(), "data");
      await mkdir(dataDir);
      await chmod(dirname(dataDir), 0o700);
      const output = await startOwner(dataDir, asInContainer).nextOutput();
      expect(output.error).toMatch(
        /cannot run as root, and user 65530 cannot run PostgreSQL \(.*unshare.*only their owner/,
      );
    });

    test("in a user namespace without another user, runs the server in a nested namespace, unless root there is root outside", async () => {
      const dataDir = await makeDir();
      const asRootInside = { prefix: ["unshare", "--user", "--map-root-user", "--"] };
      expect((await startOwner(dataDir, asRootInside).nextOutput()).error).toContain(
        "user 65530 is not mapped in the user namespace",
      );
      if (!reachable) return;
      await chown(dataDir, nobody.uid, nobody.gid);
      const output = await startOwner(dataDir, { ...asRootInside, ...nobody }).nextOutput();
      expect((await stat(`/proc/${output.pid}`)).uid).toBe(nobody.uid);
    });
  });

async function giveTo(owner: string, dataDir: string): Promise<void> {
  await run("chown", ["-R", owner, join(dataDir, "postgres")]);
}
