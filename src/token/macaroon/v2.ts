import {
  type Caveat,
  MACAROON_MAX_CAVEATS,
  MACAROON_MAX_SIZE,
  type Macaroon,
  MacaroonFormatError,
  SIGNATURE_SIZE,
} from "./format.ts";
import { Reader } from "./v2-reader.ts";

const VERSION = 2;
/** Field types of the V2 binary form (libmacaroons, `doc/format.txt`). */
const FIELD = { EOS: 0, LOCATION: 1, IDENTIFIER: 2, VERIFICATION_ID: 4, SIGNATURE: 6 } as const;

/**
 * Encodes the V2 binary form of libmacaroons: `version header EOS (caveat EOS)* EOS signature`. `decodeV2` is its inverse within the limits of
 * `format.ts` and for well-formed Unicode.
 */
export function encodeV2(macaroon: Macaroon): Uint8Array {
  return Buffer.concat([
    Uint8Array.of(VERSION),
    optionalText(FIELD.LOCATION, macaroon.location),
    field(FIELD.IDENTIFIER, macaroon.identifier),
    Uint8Array.of(FIELD.EOS),
    ...macaroon.caveats.map(encodeCaveat),
    Uint8Array.of(FIELD.EOS),
    field(FIELD.SIGNATURE, macaroon.signature),
  ]);
}

/**
 * Decodes the V2 binary form strictly: lengths must be minimal, fields in order, and nothing may follow the signature, so that `encodeV2`
 * returns the same bytes. A location on a first-party caveat is rejected, as in other libraries. Throws `MacaroonFormatError`.
 */
export function decodeV2(bytes: Uint8Array): Macaroon {
  if (bytes.length > MACAROON_MAX_SIZE) throw new MacaroonFormatError(`over ${MACAROON_MAX_SIZE} bytes`);
  const reader = new Reader(bytes);
  reader.expect(VERSION, "version");
  const location = reader.optionalText(FIELD.LOCATION, "location");
  const identifier = reader.field(FIELD.IDENTIFIER, "identifier");
  reader.expect(FIELD.EOS, "end of header");
  const caveats = readCaveats(reader);
  const signature = reader.field(FIELD.SIGNATURE, "signature");
  if (signature.length !== SIGNATURE_SIZE) throw new MacaroonFormatError("the signature is not 32 bytes long");
  reader.end();
  return { location, identifier, caveats, signature };
}

function readCaveats(reader: Reader): Caveat[] {
  const caveats: Caveat[] = [];
  while (!reader.skip(FIELD.EOS)) {
    if (caveats.length === MACAROON_MAX_CAVEATS) throw new MacaroonFormatError(`over ${MACAROON_MAX_CAVEATS} caveats`);
    caveats.push(readCaveat(reader));
  }
  return caveats;
}

function readCaveat(reader: Reader): Caveat {
  const location = reader.optionalText(FIELD.LOCATION, "caveat location");
  const identifier = reader.field(FIELD.IDENTIFIER, "caveat identifier");
  const verificationId = reader.optionalField(FIELD.VERIFICATION_ID, "caveat verification id");
  reader.expect(FIELD.EOS, "end of caveat");
  if (verificationId !== undefined) return { identifier, thirdParty: { location, verificationId } };
  if (location !== undefined) throw new MacaroonFormatError("unexpected location on a first-party caveat");
  return { identifier, thirdParty: undefined };
}

function encodeCaveat({ identifier, thirdParty }: Caveat): Uint8Array {
  return Buffer.concat([
    optionalText(FIELD.LOCATION, thirdParty?.location),
    field(FIELD.IDENTIFIER, identifier),
    thirdParty === undefined ? new Uint8Array() : field(FIELD.VERIFICATION_ID, thirdParty.verificationId),
    Uint8Array.of(FIELD.EOS),
  ]);
}

function optionalText(type: number, text: string | undefined): Uint8Array {
  return text === undefined ? new Uint8Array() : field(type, Buffer.from(text, "utf8"));
}

function field(type: number, data: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(type), varint(data.length), data]);
}

/** Encodes LEB128, least significant bits first. */
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Uint8Array.of(...bytes, rest);
}
