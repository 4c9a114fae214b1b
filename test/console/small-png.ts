import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = 8;

/** Bytes of a pixel: red, green and blue. */
const PIXEL = 3;

const MAX_COLORS = 256;

/** Returns a picture of Chromium with at most 256 colors, which takes a third of the space. Rarer colors, those of edges, become similar ones. */
export function smallPng(png: Buffer): Buffer {
  const chunks = chunksOf(png);
  const [header = Buffer.alloc(13)] = chunks.IHDR ?? [];
  const [width, height, depth, colorType] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  if (depth !== 8 || colorType !== 2) throw new Error("the picture is not RGB with 8 bits");
  const pixels = unfilter(inflateSync(Buffer.concat(chunks.IDAT ?? [])), width * PIXEL, height);
  const { palette, indexes } = reduced(pixels);
  // Each line begins with its filter: none.
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) lines.set(indexes.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const indexed = Buffer.from(header);
  indexed[9] = 3;
  return Buffer.concat([
    png.subarray(0, SIGNATURE),
    chunk("IHDR", indexed),
    chunk("PLTE", palette),
    chunk("IDAT", deflateSync(lines, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** PNG §5.3. */
function chunksOf(png: Buffer): Record<string, Buffer[]> {
  const chunks: Record<string, Buffer[]> = {};
  for (let at = SIGNATURE; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    chunks[type] = [...(chunks[type] ?? []), png.subarray(at + 8, at + 8 + length)];
    at += length + 12;
  }
  return chunks;
}

function chunk(type: string, content: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  checksum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, checksum]);
}

/** PNG §9: a byte is stored as its difference to those of the pixel to the left (a), above (b), and above that (c). */
function unfilter(lines: Buffer, stride: number, height: number): Buffer {
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = lines[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const a = x < PIXEL ? 0 : (pixels[at - PIXEL] ?? 0);
      const b = y === 0 ? 0 : (pixels[at - stride] ?? 0);
      const c = x < PIXEL || y === 0 ? 0 : (pixels[at - stride - PIXEL] ?? 0);
      const predicted = [0, a, b, (a + b) >> 1, nearest(a + b - c, [a, b, c])][filter ?? 0] ?? 0;
      pixels[at] = (lines[y * (stride + 1) + 1 + x] ?? 0) + predicted;
    }
  }
  return pixels;
}

/** Returns the first of the values that is nearest. */
function nearest(wanted: number, values: readonly number[]): number {
  return values.reduce((best, value) => (Math.abs(value - wanted) < Math.abs(best - wanted) ? value : best));
}

/** Keeps the most frequent colors, and replaces each other one by the nearest of them. */
function reduced(pixels: Buffer): { palette: Buffer; indexes: Buffer } {
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += PIXEL) {
    const color = pixels.readUIntBE(at, PIXEL);
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const colors = [...counts].sort(([, one], [, other]) => other - one).map(([color]) => color);
  const kept = colors.slice(0, MAX_COLORS);
  const indexOf = new Map(
    colors.map((color) => {
      const distances = kept.map((one) => distance(one, color));
      return [color, distances.indexOf(Math.min(...distances))];
    }),
  );
  const palette = Buffer.alloc(kept.length * PIXEL);
  for (const [index, color] of kept.entries()) palette.writeUIntBE(color, index * PIXEL, PIXEL);
  const indexes = Buffer.alloc(pixels.length / PIXEL);
  for (let n = 0; n < indexes.length; n++) indexes[n] = indexOf.get(pixels.readUIntBE(n * PIXEL, PIXEL)) ?? 0;
  return { palette, indexes };
}

function distance(one: number, other: number): number {
  const differences = [16, 8, 0].map((shift) => ((one >> shift) & 255) - ((other >> shift) & 255));
  return differences.reduce((sum, difference) => sum + difference ** 2, 0);
}
