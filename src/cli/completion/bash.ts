import { type Node, pathsOf, quoted, valuesOf } from "./tree.ts";

/** Returns a completion script for bash 3.2 and later. Without a match, bash completes file names. */
export function bashScript(nodes: readonly Node[]): string {
  return `# bash completion for keyhold
_keyhold() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" route= words= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${route:+$route }$word" in
      ${pathsOf(nodes).map(quoted).join("|")}) route="\${route:+$route }$word" ;;
    esac
  done
  case "$route:$previous" in
${valuesOf(nodes).map(valueCase).join("\n")}
    *) case "$route" in
${nodes.map(nodeCase).join("\n")}
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _keyhold keyhold
`;
}

function valueCase({ path, option }: ReturnType<typeof valuesOf>[number]): string {
  return `    ${quoted(`${path}:${option.word}`)}) words=${quoted(option.values.join(" "))} ;;`;
}

function nodeCase({ path, commands, options }: Node): string {
  const words = [...commands, ...options].map(({ word }) => word).join(" ");
  return `        ${quoted(path)}) words=${quoted(words)} ;;`;
}
