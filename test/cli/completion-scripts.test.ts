import { expect, test } from "vitest";
import { fishScript } from "../../src/cli/completion/fish.ts";
import { type Node, nodesOf } from "../../src/cli/completion/tree.ts";
import { zshScript } from "../../src/cli/completion/zsh.ts";
import { createProgram } from "../../src/cli/program.ts";
import { runKeyhold } from "../support/keyhold.ts";

// Neither fish nor zsh may be installed where the tests run, so their scripts are pinned for a small program with every feature of a
// script. `completion-shells.test.ts` runs the scripts in the installed shells.
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
