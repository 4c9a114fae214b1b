import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { fishScript, type Node, nodesOf, zshScript } from "../../src/cli/completion.ts";
import { createProgram } from "../../src/cli/program.ts";
import { table } from "../support/conformance.ts";
import { runKeyhold } from "../support/keyhold.ts";

// Neither fish nor zsh may be installed where the tests run, so their scripts are pinned for a small program with every feature of a
// script. Further tests run the scripts in the installed shells.
const NODES: readonly Node[] = [
  {
    path: "",
    commands: [
      { word: "keys", description: "the users' keys" },
      { word: "doctor", description: "what is wrong" },
    ],
    options: [{ word: "-q", description: "say \\ nothing", takesValue: false, values: [] }],
  },
  { path: "keys", commands: [{ word: "list", description: "show them: all" }], options: [] },
  {
    path: "keys list",
    commands: [],
    options: [
      { word: "--json", description: "as JSON", takesValue: false, values: [] },
      { word: "--out", description: "a file", takesValue: true, values: [] },
      { word: "--kind", description: "which", takesValue: true, values: ["issued", "imported"] },
    ],
  },
  { path: "doctor", commands: [], options: [] },
];

test("the script for fish matches", () => {
  expect(fishScript(NODES)).toBe(String.raw`# fish completion for keyhold
function __keyhold_at
    set -l route
    for word in (commandline -opc)[2..]
        if contains -- (string join -- ' ' $route $word) 'keys' 'keys list' 'doctor'
            set -a route $word
        end
    end
    test "$route" = "$argv[1]"
end
complete -c keyhold -n '__keyhold_at \'\'' -f -a keys -d 'the users\' keys'
complete -c keyhold -n '__keyhold_at \'\'' -f -a doctor -d 'what is wrong'
complete -c keyhold -n '__keyhold_at \'\'' -s q -d 'say \\ nothing'
complete -c keyhold -n '__keyhold_at \'keys\'' -f -a list -d 'show them: all'
complete -c keyhold -n '__keyhold_at \'keys list\'' -l json -d 'as JSON'
complete -c keyhold -n '__keyhold_at \'keys list\'' -l out -r -d 'a file'
complete -c keyhold -n '__keyhold_at \'keys list\'' -l kind -x -a 'issued imported' -d 'which'
`);
});

test("the script for zsh matches", () => {
  expect(zshScript(NODES)).toBe(String.raw`#compdef keyhold
_keyhold() {
  local route= word
  local -a choices
  for word in "${"$"}{(@)words[2,CURRENT-1]}"; do
    case "${"$"}{route:+$route }$word" in
      ('keys'|'keys list'|'doctor') route="${"$"}{route:+$route }$word" ;;
    esac
  done
  case "$route:$words[CURRENT-1]" in
    ('keys list:--out') _files; return ;;
    ('keys list:--kind') compadd -- issued imported; return ;;
  esac
  case "$route" in
    ('') choices=('keys:the users'\'' keys' 'doctor:what is wrong' '-q:say \ nothing') ;;
    ('keys') choices=('list:show them: all') ;;
    ('keys list') choices=('--json:as JSON' '--out:a file' '--kind:which') ;;
    ('doctor') choices=() ;;
  esac
  _describe keyhold choices || _files
}
if [[ $funcstack[1] == _keyhold ]]; then _keyhold "$@"; else compdef _keyhold keyhold; fi
`);
});

test.each([
  ["fish", fishScript],
  ["zsh", zshScript],
])("the command prints the script for %s", async (shell, script) => {
  const { code, stdout } = await runKeyhold(["completion", shell], {});
  expect([code, stdout]).toEqual([0, script(nodesOf(createProgram()))]);
});

test("both scripts contain every command and every option of the program", () => {
  const nodes = nodesOf(createProgram());
  const paths = nodes.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["", "serve", "keys import", "admin token create"]));
  expect(paths).not.toContain("worker");
  const [fish, zsh] = [fishScript(nodes), zshScript(nodes)];
  for (const { path, commands, options } of nodes) {
    for (const { word } of commands) expect(fish).toContain(`'__keyhold_at \\'${path}\\'' -f -a ${word} -d `);
    for (const { word } of options.filter((option) => option.word.startsWith("--")))
      expect(fish).toContain(`'__keyhold_at \\'${path}\\'' -l ${word.slice(2)} `);
    const [, choices = ""] = zsh.split(`    ('${path}') choices=(`);
    for (const { word } of [...commands, ...options]) expect(choices.split("\n")[0]).toContain(`'${word}:`);
  }
});

/** Returns what a shell offers for the last word. */
type Complete = (words: readonly string[]) => Promise<string[]>;

async function scriptFor(shell: string): Promise<string> {
  const { stdout, code } = await runKeyhold(["completion", shell], {});
  expect(code).toBe(0);
  return stdout;
}

async function linesOf(program: string, args: readonly string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)(program, args);
  return stdout.split("\n").filter(Boolean);
}

async function bash(words: readonly string[]): Promise<string[]> {
  const program = `${await scriptFor("bash")}
    complete -p keyhold | grep -q -- '-F _keyhold' || exit 9
    COMP_WORDS=(keyhold "$@"); COMP_CWORD=$#; _keyhold
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  return linesOf("bash", ["-c", program, "bash", ...words]);
}

/** Its completion system runs only in a terminal, so its calls are printed. It filters the choices itself. */
const ZSH_STUBS = `
  compdef() { print -r -- "compdef $*" }
  compadd() { shift; print -rl -- "$@" }
  _files() { print -r -- FILES }
  _describe() { (( $#choices )) && print -rl -- "\${(@)choices%%:*}" }`;

async function zsh(words: readonly string[]): Promise<string[]> {
  const program = `${ZSH_STUBS}
    ${await scriptFor("zsh")}
    words=(keyhold "$@"); CURRENT=$#words; _keyhold`;
  const [registered, ...offered] = await linesOf("zsh", ["-f", "-c", program, "zsh", ...words]);
  expect(registered).toBe("compdef _keyhold keyhold");
  return offered.filter((word) => word.startsWith(words.at(-1) ?? ""));
}

/** With the description after a tab. Without a match it lists the files of the folder. */
async function fish(words: readonly string[]): Promise<string[]> {
  const empty = await mkdtemp(join(inject("testDir"), "fish-"));
  const script = join(empty, "keyhold.fish");
  await writeFile(script, await scriptFor("fish"));
  const program = `cd ${empty}; source ${script}; complete -C "keyhold ${words.join(" ")}"`;
  const lines = await linesOf("fish", ["--no-config", "-c", program]);
  return lines.map((line) => line.split("\t")[0] ?? "");
}

const SHELLS: Readonly<Record<string, Complete>> = { bash, zsh, fish };

const CASES: readonly (readonly [words: readonly string[], offered: readonly string[]])[] = [
  [["key"], ["keys"]],
  [["keys", "re"], ["revoke"]],
  [["keys", "revoke", "--re"], ["--reason"]],
  [["keys", "revoke", "--reason", "s"], ["superseded"]],
  [["keys", "revoke", "--reason", "superseded", "--se"], ["--self"]],
  [["admin", "token", "cr"], ["create"]],
  [["completion", "z"], ["zsh"]],
];

/** All possible next words; fish offers options only for a word that begins with a dash. */
const ALL: readonly (readonly [words: readonly string[], commands: readonly string[], options: readonly string[]])[] = [
  [["signing-keys", ""], ["list", "revoke", "rotate"], ["--help"]],
  [["completion", ""], ["bash", "zsh", "fish"], ["--help"]],
];

const isInstalled = (shell: string) => spawnSync(shell, ["--version"]).status === 0;
const installed = Object.entries(SHELLS).filter(([shell]) => isInstalled(shell));
const runs = installed.flatMap(([shell, complete]) => CASES.map((one) => [shell, ...one, complete] as const));

test.each(table(runs))("%s completes %j", async (_, words, offered, complete) => {
  expect(await complete(words)).toEqual(offered);
});

const all = installed.flatMap(([shell, complete]) => ALL.map((one) => [shell, ...one, complete] as const));

test.each(table(all))("%s offers all completions: %j", async (shell, words, commands, options, complete) => {
  const offered = await complete(words);
  expect(offered.sort()).toEqual([...commands, ...(shell === "fish" ? [] : options)].sort());
});

const FILES: Readonly<Record<string, readonly string[]>> = { bash: [], zsh: ["FILES"], fish: ["keyhold.fish"] };
const files = installed.map(([shell, complete]) => [shell, FILES[shell] ?? [], complete] as const);

test.each(table(files))("%s completes the name of a file as the value of --out", async (_, offered, complete) => {
  expect(await complete(["keys", "issue", "--out", ""])).toEqual(offered);
});

const zshs = isInstalled("zsh") ? ["zsh"] : [];

test.for(zshs)("%s also loads the script from fpath", async (shell) => {
  const folder = await mkdtemp(join(inject("testDir"), "zsh-"));
  await writeFile(join(folder, "_keyhold"), zshScript(nodesOf(createProgram())));
  const program = `${ZSH_STUBS}
    fpath=(${folder}); autoload -Uz _keyhold
    words=(keyhold completion ''); CURRENT=3; _keyhold`;
  expect(await linesOf(shell, ["-f", "-c", program])).toEqual(["bash", "zsh", "fish", "--help"]);
});
