import type { Command, Option } from "commander";

/** A command as a shell completes it. */
export interface Node {
  /** Its words behind the name of the program, such as `keys issue`; empty: the program. */
  readonly path: string;
  /** Those below it, and what its arguments may be. */
  readonly commands: readonly Choice[];
  readonly options: readonly OptionNode[];
}

/** A word that may stand there. */
export interface Choice {
  readonly word: string;
  readonly description: string;
}

export interface OptionNode extends Choice {
  readonly takesValue: boolean;
  /** What the value may be; empty: anything, of which a shell knows the names of files. */
  readonly values: readonly string[];
}

/** All commands that are not hidden, each before those below it. */
export function nodesOf(command: Command, path = ""): Node[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((one) => one.name() !== "help");
  const options = help.visibleOptions(command).map(optionNode);
  const words = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const choices = [...commands.map(choice), ...words.map((word) => ({ word, description: word }))];
  return [
    { path, commands: choices, options },
    ...commands.flatMap((one) => nodesOf(one, `${path} ${one.name()}`.trim())),
  ];
}

function choice(command: Command): Choice {
  return { word: command.name(), description: command.description() };
}

function optionNode({ long, short, description, required, optional, argChoices }: Option): OptionNode {
  return { word: long ?? short ?? "", description, takesValue: required || optional, values: argChoices ?? [] };
}

/** The paths of all commands but the program itself. */
export function pathsOf(nodes: readonly Node[]): string[] {
  return nodes.flatMap(({ path }) => path || []);
}

/** The options that take a value, with the commands that they are of. */
export function valuesOf(nodes: readonly Node[]): { readonly path: string; readonly option: OptionNode }[] {
  return nodes.flatMap(({ path, options }) =>
    options.filter(({ takesValue }) => takesValue).map((option) => ({ path, option })),
  );
}

/** A text that a POSIX shell, and zsh, takes as it is. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
