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
  readonly #extensions: DescExtension[] = [];
  readonly #bytes = new Map<DescFile, Uint8Array>();

  /** Of these files and all that they import. */
  constructor(files: Iterable<DescFile>) {
    const all = new Set(files);
    for (const file of all) {
      this.#add(file);
      // A set is walked with what is added meanwhile.
      for (const dependency of file.dependencies) all.add(dependency);
    }
  }

  file(name: string): DescFile | undefined {
    return this.#files.get(name);
  }

  /** The file that declares a service, method, message, field, oneof, enum, enum value or extension. */
  fileOfSymbol(name: string): DescFile | undefined {
    return this.#symbols.get(name);
  }

  fileOfExtension(message: string, number: number): DescFile | undefined {
    return this.#extensionsOf(message).find((extension) => extension.number === number)?.file;
  }

  /** Undefined where neither the message nor an extension of it is known. */
  extensionNumbers(message: string): number[] | undefined {
    const numbers = this.#extensionsOf(message).map(({ number }) => number);
    return numbers.length > 0 || this.#symbols.has(message) ? numbers.sort((a, b) => a - b) : undefined;
  }

  /** A `google.protobuf.FileDescriptorProto`, with its options. */
  bytesOf(file: DescFile): Uint8Array {
    const bytes = this.#bytes.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
    this.#bytes.set(file, bytes);
    return bytes;
  }

  #extensionsOf(message: string): DescExtension[] {
    return this.#extensions.filter(({ extendee }) => extendee.typeName === message);
  }

  #add(file: DescFile): void {
    this.#files.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      for (const symbol of [type.typeName, ...memberNames(type)]) this.#symbols.set(symbol, file);
      if (type.kind === "extension") this.#extensions.push(type);
    }
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
      // Named beside it, not in it (descriptor.proto, "EnumValueDescriptorProto").
      return type.values.map(({ name }) => type.typeName.replace(/[^.]*$/, name));
    default:
      return [];
  }
}
