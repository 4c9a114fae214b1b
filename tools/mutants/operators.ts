import { parseAst } from "rolldown/parseAst";

/** A change of a source file that its tests should detect. */
export interface Mutant {
  readonly operator: string;
  /** Range of the text that is replaced. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A node of the syntax tree (ESTree, with TypeScript's extensions). */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [name: string]: unknown;
}

const PAIRS = ["< <=", "> >=", "=== !==", "+ -", "* /", "&& ||"].map((pair) => pair.split(" "));
const SWAPPED = new Map(PAIRS.flatMap(([one = "", other = ""]) => [[one, other] as const, [other, one] as const]));

/** Expressions of TypeScript that contain code; everything else of TypeScript is types. */
const TYPED_CODE = new Set(["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"]);

/** Returns the mutants of a TypeScript file. */
export function mutantsOf(source: string): Mutant[] {
  const found: Mutant[] = [];
  visit(parseAst(source, { lang: "ts" }) as unknown as Node, (node) => found.push(...mutate(node, source)));
  return found;
}

function visit(node: Node, onNode: (node: Node) => void): void {
  if (node.type.startsWith("TS") && !TYPED_CODE.has(node.type)) return;
  onNode(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, onNode);
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function mutate(node: Node, source: string): Mutant[] {
  const textOf = ({ start, end }: Node) => source.slice(start, end);
  const replace = (operator: string, { start, end }: Node, text: string): Mutant => ({ operator, start, end, text });
  const { test, left, right, argument, expression } = node;
  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
      return isNode(test)
        ? [
            replace("negate the condition", test, `!(${textOf(test)})`),
            replace("the condition is never true", test, "false"),
            replace("the condition is always true", test, "true"),
          ]
        : [];
    case "BinaryExpression":
    case "LogicalExpression": {
      const operator = SWAPPED.get(String(node.operator));
      if (!isNode(left) || !isNode(right) || operator === undefined) return [];
      const swapped = `${textOf(left)} ${operator} ${textOf(right)}`;
      return [
        replace(`${node.operator} to ${operator}`, node, node.type === "LogicalExpression" ? `(${swapped})` : swapped),
      ];
    }
    case "AwaitExpression":
      return isNode(argument) ? [replace("remove await", node, `(${textOf(argument)})`)] : [];
    case "ExpressionStatement":
      return isNode(expression) && isCall(expression) ? [replace("remove the call", node, ";")] : [];
    case "UnaryExpression":
      return node.operator === "!" && isNode(argument) ? [replace("remove !", node, textOf(argument))] : [];
    case "Literal":
      if (typeof node.value === "number") return [replace("another number", node, String(node.value + 1))];
      return typeof node.value === "boolean" ? [replace("another boolean", node, String(!node.value))] : [];
    default:
      return [];
  }
}

function isCall({ type, argument }: Node): boolean {
  if (type === "CallExpression") return true;
  return (type === "AwaitExpression" || type === "UnaryExpression") && isNode(argument) && isCall(argument);
}
