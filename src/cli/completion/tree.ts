import type { Command, Option } from "commander";

/** A command in the completion tree. */
export interface Node {
  /** Its words after the program name, such as `keys issue`; empty for the program. */
  readonly path: string;
  /** Its subcommands and the choices of its arguments. */
  readonly commands: readonly Choice[];
  readonly options: readonly OptionNode[];
}

/** A word that can be completed. */
export interface Choice {
  readonly word: string;
  readonly description: string;
}

export interface OptionNode extends Choice {
  readonly takesValue: boolean;
  /** Choices of the value; empty if any value is allowed, for which shells complete file names. */
  readonly values: readonly string[];
}

/** Returns all visible commands, each before its subcommands. */
export function nodesOf(command: Command, path = ""): Node[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((subcommand) => subcommand.name() !== "help");
  const options = help.visibleOptions(command).map(optionNode);
  const words = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const choices = [
    ...commands.map((subcommand) => ({ word: subcommand.name(), description: subcommand.description() })),
    ...words.map((word) => ({ word, description: word })),
  ];
  return [
    { path, commands: choices, options },
    ...commands.flatMap((subcommand) => nodesOf(subcommand, `${path} ${subcommand.name()}`.trim())),
  ];
}

function optionNode({ long, short, description, required, optional, argChoices }: Option): OptionNode {
  return { word: long ?? short ?? "", description, takesValue: required || optional, values: argChoices ?? [] };
}

/** Returns the paths of all commands except the program. */
export function pathsOf(nodes: readonly Node[]): string[] {
  return nodes.flatMap(({ path }) => path || []);
}

/** Returns the options that take a value, with the path of their command. */
export function valuesOf(nodes: readonly Node[]): { readonly path: string; readonly option: OptionNode }[] {
  return nodes.flatMap(({ path, options }) =>
    options.filter(({ takesValue }) => takesValue).map((option) => ({ path, option })),
  );
}

/** Quotes text for a POSIX shell or zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
