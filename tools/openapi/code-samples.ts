import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type HarRequest, HTTPSnippet } from "@readme/httpsnippet";

/** The request of code samples. */
export interface SampleRequest {
  readonly httpMethod: string;
  /** With variables, such as `/keys/{key_id}`. */
  readonly path: string;
  readonly needsToken: boolean;
  /** Whether the response is a stream of events. */
  readonly isStream?: boolean;
  /** Of path and query, by name. */
  readonly parameters?: Readonly<Record<string, string | number>>;
  readonly body?: JsonValue;
  /** The form that is sent in place of a body in JSON. */
  readonly form?: Readonly<Record<string, string>>;
}

/** The default address of a server. The viewer substitutes its own. */
export const SAMPLE_SERVER = "http://127.0.0.1:4420";

type Edit = readonly [from: string | RegExp, to: string];

/** A target of httpsnippet, with edits that complete the program. A secret is read from the environment. */
interface Language {
  readonly lang: string;
  readonly label?: string;
  readonly target: Parameters<HTTPSnippet["convert"]>;
  readonly edits?: readonly Edit[];
  readonly tokenEdits: readonly Edit[];
  readonly streamEdits?: readonly Edit[];
}

const LANGUAGES: readonly Language[] = [
  {
    lang: "Shell",
    label: "curl",
    target: ["shell", "curl"],
    tokenEdits: [["'Authorization: Bearer $KEYHOLD_TOKEN'", '"Authorization: Bearer $$KEYHOLD_TOKEN"']],
    streamEdits: [["curl ", "curl --no-buffer "]],
  },
  {
    lang: "TypeScript",
    target: ["node", "fetch"],
    tokenEdits: [["'Bearer $KEYHOLD_TOKEN'", "`Bearer $${process.env.KEYHOLD_TOKEN}`"]],
  },
  {
    lang: "Python",
    target: ["python", "requests"],
    tokenEdits: [
      ['"Bearer $KEYHOLD_TOKEN"', `f"Bearer {os.environ['KEYHOLD_TOKEN']}"`],
      ["import requests", "import os\n\nimport requests"],
    ],
    streamEdits: [
      ["headers=headers)", "headers=headers, stream=True)"],
      ["print(response.text)", "for line in response.iter_lines():\n    print(line.decode())"],
    ],
  },
  {
    lang: "Go",
    target: ["go", "native", { checkErrors: true }],
    // The response is copied as it arrives: it may be a stream.
    edits: [
      ['\t"fmt"\n', ""],
      ['\t"net/http"\n\t"io"\n', '\t"net/http"\n\t"os"\n'],
      ["import (\n", 'import (\n\t"io"\n'],
      [/(\t"strings"\n)(.*\n\t"os"\n)/, "$2$1"],
      ["{\n\n", "{\n"],
      [/\tbody, err := [\s\S]*/, "\tif _, err := io.Copy(os.Stdout, res.Body); err != nil {\n\t\tpanic(err)\n\t}\n}"],
    ],
    tokenEdits: [['"Bearer $KEYHOLD_TOKEN"', '"Bearer "+os.Getenv("KEYHOLD_TOKEN")']],
  },
  {
    lang: "Java",
    target: ["java", "nethttp"],
    edits: [
      [
        /HttpResponse<String> .*\n.*$/,
        "HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofLines()).body().forEach(System.out::println);",
      ],
      [/^/gm, "        "],
      [
        "",
        "import java.net.URI;\nimport java.net.http.*;\n\nclass Sample {\n    public static void main(String[] args) throws Exception {\n",
      ],
      [/$/, "\n    }\n}"],
    ],
    tokenEdits: [['"Bearer $KEYHOLD_TOKEN"', '"Bearer " + System.getenv("KEYHOLD_TOKEN")']],
  },
];

/** Returns the `x-codeSamples` of a request, an extension that Redoc, Scalar and other viewers show. `typescript` replaces a call of `fetch`. */
export function codeSamples(request: SampleRequest, typescript?: string): JsonObject[] {
  const snippet = new HTTPSnippet(harOf(request));
  return LANGUAGES.map((language) => {
    const { lang, label } = language;
    const source = lang === "TypeScript" && typescript !== undefined ? typescript : convert(snippet, language, request);
    return { lang, ...(label === undefined ? {} : { label }), source };
  });
}

function convert(snippet: HTTPSnippet, language: Language, { needsToken, isStream = false }: SampleRequest): string {
  const { target, edits = [], tokenEdits, streamEdits = [] } = language;
  const [source = false] = snippet.convert(...target) || [];
  if (source === false) throw new Error(`httpsnippet has no target ${target.join()}`);
  const all = [...edits, ...(needsToken ? tokenEdits : []), ...(isStream ? streamEdits : [])];
  return all.reduce<string>((text, [from, to]) => text.replace(from, to), source);
}

/** Returns the request in the form of an HTTP Archive. */
function harOf({ httpMethod, path, needsToken, parameters = {}, body, form }: SampleRequest): HarRequest {
  const inPath = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(parameters[name])));
  const isInQuery = (name: string) => !path.includes(`{${name}}`);
  const json = { mimeType: "application/json", text: JSON.stringify(body) };
  const postData =
    form === undefined ? json : { mimeType: "application/x-www-form-urlencoded", params: pairs(Object.entries(form)) };
  const hasBody = body !== undefined || form !== undefined;
  return {
    method: httpMethod,
    url: SAMPLE_SERVER + inPath,
    httpVersion: "HTTP/1.1",
    headers: [
      ...(needsToken ? [{ name: "Authorization", value: "Bearer $KEYHOLD_TOKEN" }] : []),
      ...(hasBody ? [{ name: "Content-Type", value: postData.mimeType }] : []),
    ],
    queryString: pairs(Object.entries(parameters).filter(([name]) => isInQuery(name))),
    cookies: [],
    headersSize: -1,
    bodySize: -1,
    postData: hasBody ? postData : { mimeType: "" },
  };
}

function pairs(entries: readonly (readonly [string, string | number])[]) {
  return entries.map(([name, value]) => ({ name, value: String(value) }));
}
