import {
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

type NestedType = DescMessage | DescEnum | DescExtension | DescService;

/** What server reflection can be asked for: files, and what they declare, by name. */
export class Catalog {
  readonly #files = new Map<string, DescFile>();
  /** The file of every symbol by its full name, without a dot in front. */
  readonly #symbols = new Map<string, DescFile>();
  /** Extensions by the message that they extend, then by number. */
  readonly #extensions = new Map<string, Map<number, DescExtension>>();
  readonly #bytes = new Map<DescFile, Uint8Array>();

  /** Of these files and all that they import. */
  constructor(files: Iterable<DescFile>) {
    for (const file of files) this.#add(file);
  }

  file(name: string): DescFile | undefined {
    return this.#files.get(name);
  }

  /** The file that declares a service, method, message, field, oneof, enum, enum value or extension. */
  fileOfSymbol(name: string): DescFile | undefined {
    return this.#symbols.get(name);
  }

  fileOfExtension(message: string, number: number): DescFile | undefined {
    return this.#extensions.get(message)?.get(number)?.file;
  }

  /** Undefined where neither the message nor an extension of it is known. */
  extensionNumbers(message: string): number[] | undefined {
    const numbers = this.#extensions.get(message);
    if (numbers === undefined) return this.#symbols.has(message) ? [] : undefined;
    return [...numbers.keys()].sort((a, b) => a - b);
  }

  /** A `google.protobuf.FileDescriptorProto`, with its options. */
  bytesOf(file: DescFile): Uint8Array {
    const bytes = this.#bytes.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
    this.#bytes.set(file, bytes);
    return bytes;
  }

  #add(file: DescFile): void {
    const { name } = file.proto;
    if (this.#files.has(name)) return;
    this.#files.set(name, file);
    for (const type of nestedTypes(file)) {
      for (const symbol of [type.typeName, ...memberNames(type)]) this.#symbols.set(symbol, file);
      if (type.kind === "extension") this.#addExtension(type);
    }
    for (const dependency of file.dependencies) this.#add(dependency);
  }

  #addExtension(extension: DescExtension): void {
    const { typeName } = extension.extendee;
    const numbers = this.#extensions.get(typeName) ?? new Map<number, DescExtension>();
    this.#extensions.set(typeName, numbers.set(extension.number, extension));
  }
}

function memberNames(type: NestedType): string[] {
  const within = ({ name }: { readonly name: string }) => `${type.typeName}.${name}`;
  switch (type.kind) {
    case "message":
      return [...type.fields, ...type.oneofs].map(within);
    case "service":
      return type.methods.map(within);
    case "enum":
      return enumValueNames(type);
    default:
      return [];
  }
}

/** The values of an enum are named beside it, not in it (descriptor.proto, "EnumValueDescriptorProto"). */
function enumValueNames({ typeName, values }: DescEnum): string[] {
  const scope = typeName.slice(0, typeName.lastIndexOf(".") + 1);
  return values.map(({ name }) => scope + name);
}
