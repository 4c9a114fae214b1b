import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type * as protovalidate from "@bufbuild/protovalidate";

const require = createRequire(import.meta.url);

let made: protovalidate.Validator | undefined;

/** The validator of the rules in the protos. It is loaded when it is first asked for: that takes 0.1 s and 15 MB. */
export function validator(): protovalidate.Validator {
  made ??= load().createValidator();
  return made;
}

/** The module of ECMAScript, not that for `require`, which would bring another copy of the Protobuf runtime along. */
function load(): typeof protovalidate {
  return require(fileURLToPath(import.meta.resolve("@bufbuild/protovalidate")));
}
