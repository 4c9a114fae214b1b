import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmod, copyFile, cp, mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { dockerfile, root } from "../files.ts";

/** The result of `docker build` in a folder: the last stage, whose `/` is that folder. */
export interface Image {
  readonly folder: string;
  /** Runs the entry point like an engine: as the image's user, on a read-only file system, without privileges and HOME. */
  start(args: readonly string[], environment: Record<string, string>): ChildProcess;
  /** Runs the health check. Resolves with its exit status. */
  health(environment: Record<string, string>): Promise<number>;
}

interface Build {
  readonly folder: string;
  /** Folders of the named stages. */
  readonly stages: Map<string, string>;
  /** Folder of the current stage. */
  stage: string;
  workdir: string;
  environment: Record<string, string>;
  /** Settings for running the image. */
  readonly settings: Record<string, string>;
}

/** The instructions of our Dockerfile. An unknown one is an error, so that none is skipped. */
const STEPS: Readonly<Record<string, (build: Build, text: string, step: string) => unknown>> = {
  ARG: () => undefined,
  LABEL: () => undefined,
  FROM: beginStage,
  WORKDIR: async (build, text) => {
    build.workdir = join(build.stage, text);
    await mkdir(build.workdir, { recursive: true });
  },
  COPY: copy,
  RUN: ({ workdir }, text) => promisify(execFile)("sh", ["-c", text], { cwd: workdir }),
  ENV: (build, text) => {
    build.environment = Object.fromEntries(text.split(/\s+/).map((pair) => pair.split("=")));
  },
  EXPOSE: keep,
  USER: keep,
  STOPSIGNAL: keep,
  HEALTHCHECK: keep,
  ENTRYPOINT: keep,
  CMD: keep,
};

export async function buildImage(folder: string): Promise<Image> {
  const build: Build = { folder, stages: new Map(), stage: folder, workdir: folder, environment: {}, settings: {} };
  for (const [step, text] of stepsOf(dockerfile)) {
    const perform = STEPS[step];
    if (perform === undefined) throw new Error(`this does not know ${step}`);
    await perform(build, text, step);
  }
  await addNode(folder);
  return imageOf(build);
}

function beginStage(build: Build, text: string): void {
  const name = / AS (\S+)$/.exec(text)?.[1];
  build.stage = name === undefined ? build.folder : `${build.folder}-${name}`;
  if (name !== undefined) build.stages.set(name, build.stage);
  build.environment = {};
}

function keep({ settings }: Build, text: string, step: string): void {
  settings[step] = text;
}

/** Returns the steps, each with its text in one line. */
function stepsOf(text: string): [step: string, text: string][] {
  const lines = text
    .replace(/^#.*\n/gm, "")
    .replace(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => [line.split(" ", 1)[0] ?? "", line.slice(line.indexOf(" ") + 1)]);
}

async function copy({ stages, workdir }: Build, text: string): Promise<void> {
  const [, from, paths = ""] = /^(?:--from=(\S+) )?(.*)$/.exec(text) ?? [];
  const sources = paths.split(" ");
  const last = sources.pop() ?? "";
  const context = from === undefined ? root : (stages.get(from) ?? "");
  for (const source of sources) {
    const target = last.endsWith("/") ? join(last, basename(source)) : last;
    await cp(join(context, source), join(workdir, target), { recursive: true });
  }
}

/** Node of the base image. The host's own may be inaccessible to another user. */
async function addNode(folder: string): Promise<void> {
  await mkdir(join(folder, "usr/bin"), { recursive: true });
  await copyFile(process.execPath, join(folder, "usr/bin/node"));
  await chmod(folder, 0o755);
}

function imageOf({ folder, settings, environment }: Build): Image {
  const command = (text = "") => {
    const words: string[] = JSON.parse(text.slice(text.indexOf("[")));
    return words.map((word) =>
      word === "node" ? join(folder, "usr/bin/node") : word.replace(/^\/app/, `${folder}/app`),
    );
  };
  const start = (words: readonly string[], more: Record<string, string>) => {
    const env = { PATH: process.env.PATH, ...environment, ...more };
    return spawn("unshare", confined(folder, settings.USER ?? "", words), { env, stdio: ["ignore", "pipe", "pipe"] });
  };
  return {
    folder,
    start: (args, more) => start([...command(settings.ENTRYPOINT), ...args], more),
    health: async (more) => {
      const child = start(command(settings.HEALTHCHECK), more);
      return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? -1)));
    },
  };
}

/** Arguments of unshare(1). Only root can change the user. */
function confined(folder: string, user: string, words: readonly string[]): string[] {
  const [uid, gid] = user.split(":");
  const script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0/app" && exec "$@"';
  const rights = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"];
  const isRoot = process.getuid?.() === 0;
  const become = isRoot ? [...rights, `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"] : rights;
  return [...(isRoot ? [] : ["--user", "--map-root-user"]), "--mount", "sh", "-c", script, folder, ...become, ...words];
}
