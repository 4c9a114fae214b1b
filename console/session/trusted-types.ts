/*
 * The page requires Trusted Types for all sinks of HTML and script. Its libraries write style sheets by `innerHTML` of a style element: the
 * default policy lets through text without a tag, and nothing else.
 */
interface PolicyFactory {
  createPolicy(name: string, rules: { createHTML(html: string): string }): unknown;
}

const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };

trustedTypes?.createPolicy("default", {
  createHTML(html) {
    if (html.includes("<")) throw new TypeError("markup is not written as text");
    return html;
  },
});
