import { type Node, type OptionNode, pathsOf } from "./tree.ts";

/** Returns a completion script for fish. Without a match, fish completes file names. */
export function fishScript(nodes: readonly Node[]): string {
  return `# fish completion for keyhold
function __keyhold_at
    set -l route
    for word in (commandline -opc)[2..]
        if contains -- (string join -- ' ' $route $word) ${pathsOf(nodes).map(quoted).join(" ")}
            set -a route $word
        end
    end
    test "$route" = "$argv[1]"
end
${nodes.flatMap(linesOf).join("\n")}
`;
}

function linesOf({ path, commands, options }: Node): string[] {
  const here = `complete -c keyhold -n ${quoted(`__keyhold_at ${quoted(path)}`)}`;
  return [
    ...commands.map(({ word, description }) => `${here} -f -a ${word} -d ${quoted(description)}`),
    ...options.map((option) => `${here} ${optionWords(option)} -d ${quoted(option.description)}`),
  ];
}

function optionWords({ word, takesValue, values }: OptionNode): string {
  const name = word.startsWith("--") ? `-l ${word.slice(2)}` : `-s ${word.slice(1)}`;
  if (values.length > 0) return `${name} -x -a ${quoted(values.join(" "))}`;
  return takesValue ? `${name} -r` : name;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
