import { type Choice, type Node, pathsOf, quoted, valuesOf } from "./tree.ts";

/** Returns a completion script for zsh, to install as `_keyhold` in a folder of `fpath` or to evaluate. */
export function zshScript(nodes: readonly Node[]): string {
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
${valuesOf(nodes).map(valueCase).join("\n")}
  esac
  case "$route" in
${nodes.map(nodeCase).join("\n")}
  esac
  _describe keyhold choices || _files
}
if [[ $funcstack[1] == _keyhold ]]; then _keyhold "$@"; else compdef _keyhold keyhold; fi
`;
}

function valueCase({ path, option }: ReturnType<typeof valuesOf>[number]): string {
  const complete = option.values.length === 0 ? "_files" : `compadd -- ${option.values.join(" ")}`;
  return `    (${quoted(`${path}:${option.word}`)}) ${complete}; return ;;`;
}

function nodeCase({ path, commands, options }: Node): string {
  return `    (${quoted(path)}) choices=(${[...commands, ...options].map(described).join(" ")}) ;;`;
}

function described({ word, description }: Choice): string {
  return quoted(`${word}:${description}`);
}
