import type { Command, Option } from "commander";
import { write } from "./output.ts";

/** A command, by its words after the program name such as `keys issue`, with its subcommands and choices of arguments. */
export type Node = ReturnType<typeof nodeOf>;

type Choice = Node["commands"][number];

/** Prints the completion script of a shell, generated from the command tree. Without a match, each completes file names. */
export async function printCompletion(program: Command, shell: keyof typeof SCRIPTS): Promise<void> {
  await write(SCRIPTS[shell](nodesOf(program)));
}

/** Returns all visible commands, each before its subcommands. */
export function nodesOf(command: Command, path = ""): Node[] {
  const subcommands = subcommandsOf(command);
  return [nodeOf(command, path), ...subcommands.flatMap((sub) => nodesOf(sub, `${path} ${sub.name()}`.trim()))];
}

function subcommandsOf(command: Command): Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((subcommand) => subcommand.name() !== "help");
}

function nodeOf(command: Command, path: string) {
  const words = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const commands = [
    ...subcommandsOf(command).map((sub) => ({ word: sub.name(), description: sub.description() })),
    ...words.map((word) => ({ word, description: word })),
  ];
  return { path, commands, options: command.createHelp().visibleOptions(command).map(optionNode) };
}

/** Without choices of the value, any is allowed, and shells complete file names. */
function optionNode({ long, short, description, required, optional, argChoices }: Option) {
  return { word: long ?? short ?? "", description, takesValue: required || optional, values: argChoices ?? [] };
}

/** Returns the paths of all commands except the program. */
function pathsOf(nodes: readonly Node[]): string[] {
  return nodes.flatMap(({ path }) => path || []);
}

/** Returns a line for each option that takes a value. `path` is that of its command and the option, separated by a colon. */
function valueLines(nodes: readonly Node[], line: (path: string, values: readonly string[]) => string): string {
  const lines = nodes.flatMap(({ path, options }) =>
    options.filter(({ takesValue }) => takesValue).map(({ word, values }) => line(quoted(`${path}:${word}`), values)),
  );
  return lines.join("\n");
}

/** Returns a line for each command, with its quoted path. */
function commandLines(nodes: readonly Node[], line: (path: string, words: readonly Choice[]) => string): string {
  return nodes.map(({ path, commands, options }) => line(quoted(path), [...commands, ...options])).join("\n");
}

/** Quotes text for a POSIX shell or zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns a script for bash 3.2 and later. */
function bashScript(nodes: readonly Node[]): string {
  return `# bash completion for keyhold
_keyhold() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" route= words= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${route:+$route }$word" in
      ${pathsOf(nodes).map(quoted).join("|")}) route="\${route:+$route }$word" ;;
    esac
  done
  case "$route:$previous" in
${valueLines(nodes, (path, values) => `    ${path}) words=${quoted(values.join(" "))} ;;`)}
    *) case "$route" in
${commandLines(nodes, (path, words) => `        ${path}) words=${quoted(words.map(({ word }) => word).join(" "))} ;;`)}
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _keyhold keyhold
`;
}

/** Returns a script for zsh, to install as `_keyhold` in a folder of `fpath` or to evaluate. */
export function zshScript(nodes: readonly Node[]): string {
  const described = ({ word, description }: Choice) => quoted(`${word}:${description}`);
  const complete = (values: readonly string[]) => (values.length === 0 ? "_files" : `compadd -- ${values.join(" ")}`);
  return `#compdef keyhold
_keyhold() {
  local route= word
  local -a choices
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${route:+$route }$word" in
      (${pathsOf(nodes).map(quoted).join("|")}) route="\${route:+$route }$word" ;;
    esac
  done
  case "$route:$words[CURRENT-1]" in
${valueLines(nodes, (path, values) => `    (${path}) ${complete(values)}; return ;;`)}
  esac
  case "$route" in
${commandLines(nodes, (path, words) => `    (${path}) choices=(${words.map(described).join(" ")}) ;;`)}
  esac
  _describe keyhold choices || _files
}
if [[ $funcstack[1] == _keyhold ]]; then _keyhold "$@"; else compdef _keyhold keyhold; fi
`;
}

export function fishScript(nodes: readonly Node[]): string {
  return `# fish completion for keyhold
function __keyhold_at
    set -l route
    for word in (commandline -opc)[2..]
        if contains -- (string join -- ' ' $route $word) ${pathsOf(nodes).map(quotedForFish).join(" ")}
            set -a route $word
        end
    end
    test "$route" = "$argv[1]"
end
${nodes.flatMap(fishLines).join("\n")}
`;
}

function fishLines({ path, commands, options }: Node): string[] {
  const here = `complete -c keyhold -n ${quotedForFish(`__keyhold_at ${quotedForFish(path)}`)}`;
  return [
    ...commands.map(({ word, description }) => `${here} -f -a ${word} -d ${quotedForFish(description)}`),
    ...options.map((option) => `${here} ${fishOption(option)} -d ${quotedForFish(option.description)}`),
  ];
}

function fishOption({ word, takesValue, values }: Node["options"][number]): string {
  const name = word.startsWith("--") ? `-l ${word.slice(2)}` : `-s ${word.slice(1)}`;
  if (values.length > 0) return `${name} -x -a ${quotedForFish(values.join(" "))}`;
  return takesValue ? `${name} -r` : name;
}

function quotedForFish(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };
