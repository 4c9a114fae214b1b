import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Writes a compressed form beside each text file, which the server sends to browsers that accept it. */
function compressed(): Plugin {
  const compress = promisify(brotliCompress);
  return {
    name: "compressed",
    apply: "build",
    async writeBundle({ dir = "" }) {
      const folder = join(dir, "assets");
      const files = (await readdir(folder)).filter((file) => /\.(?:js|css|svg)$/.test(file));
      const write = async (file: string) => {
        const bytes = await readFile(join(folder, file));
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        await writeFile(join(folder, `${file}.br`), await compress(bytes, { params }));
      };
      await Promise.all(files.map(write));
    },
  };
}

/**
 * Asks Chromium to compile all functions of a script in another thread while it is received, not each in that of the page at its first call (V8,
 * explicit compile hints). Other browsers ignore the comment.
 */
function compiledEarly(): Plugin {
  return {
    name: "compiled-early",
    apply: "build",
    generateBundle: {
      order: "post",
      handler: (_, bundle) => {
        for (const file of Object.values(bundle))
          if (file.type === "chunk") file.code = `//# allFunctionsCalledOnLoad\n${file.code}`;
      },
    },
  };
}

/** Each page, with the path below which the server serves it and its files. */
const PAGES = { "index.html": "/console", "keys.html": "/keys" } as const;

const pathOf = (page: string) => PAGES[page as keyof typeof PAGES];

/**
 * Whether a module may be in the chunk of what most pages need. A browser sends 6 requests at once over HTTP/1.1, and each takes time of the
 * page. Pages without a list do not need its parts, and the page for owners does not need the router.
 */
const isForMost = (id: string) => !/data-table|virtual|router|parts.links/.test(id);

export default defineConfig({
  root: import.meta.dirname,
  base: "/console/",
  experimental: {
    // A page names files below its own path. Scripts and styles name each other relatively, so that both pages can share them.
    renderBuiltUrl: (file, { hostType, hostId }) =>
      hostType === "html" ? `${pathOf(hostId)}/${file}` : { relative: true },
  },
  plugins: [react(), compiledEarly(), compressed()],
  resolve: {
    alias: [
      { find: /^csv-parse\/sync$/, replacement: "csv-parse/browser/esm/sync" },
      {
        find: /^.*\/buf\/validate\/validate_pb\.js$/,
        replacement: join(import.meta.dirname, "session/without-rules.ts"),
      },
    ],
  },
  html: { cspNonce: "__NONCE__" },
  build: {
    // React and the components are one chunk, which every page needs.
    chunkSizeWarningLimit: 1000,
    // Browsers of 2024 and later, which have Trusted Types or ignore them.
    target: "es2024",
    // Inline data would need data: in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Of the libraries in the built files, whose licenses require it.
    license: { fileName: "licenses.md" },
    // On a busy machine, a build that waits is no fault.
    rolldownOptions: {
      input: Object.keys(PAGES).map((page) => join(import.meta.dirname, page)),
      checks: { bundlerTimings: false },
      output: { codeSplitting: { groups: [{ name: "shared", minShareCount: 7, test: isForMost }] } },
    },
  },
});
