import type { Case } from "./cases.ts";
import { ETAG } from "./key-rpcs.ts";
import type { Request, Way } from "./protocols.ts";
import { MAX_REQUEST_BYTES } from "./subjects.ts";

const isRest = ({ protocol }: Way) => protocol === "rest";
const isHttp1 = ({ http }: Way) => http === 1;
const isHttp2 = ({ http }: Way) => http === 2;

type Options = Partial<Request> & {
  readonly body?: string;
  readonly isTaken?: boolean;
  readonly isUnseen?: boolean;
  readonly ways?: Case["ways"];
};

/** What a client sends for a request without a body. */
const BODILESS = { "content-type": null, "content-length": null };

/** A request line, such as `GET /path`; without a body unless one is given, which is JSON. */
function rest(line: string, { body, isTaken = true, isUnseen = false, ways = isRest, ...options }: Options = {}): Case {
  const [method = "", path = ""] = line.split(" ");
  const shown = body === undefined ? "" : `, body ${body.slice(0, 40)}`;
  const headers = { ...(body === undefined && BODILESS), ...options.headers };
  const parts = body === undefined ? [] : [Buffer.from(body)];
  return {
    name: [line.slice(0, 200) + shown, JSON.stringify(options.headers), options.isChunked && "in chunks"]
      .filter(Boolean)
      .join(", "),
    request: () => ({ method, path, parts, ...options, headers }),
    isTaken,
    isUnseen,
    ways: (way) => isRest(way) && ways(way),
  };
}

const ISSUED = "/v2alpha1/admin/issuedApiKeys";
const IMPORTED = "/v2alpha1/admin/importedApiKeys";
const JWKS = "/v2alpha1/derivedKeys/jwks.json";

/** The caller, and what becomes of the work, over each method. */
const behaviours = ["a", "later", "gone", "wrong,%20later", "fault"].flatMap((id) => [
  rest(`GET ${ISSUED}/${id}`),
  rest(`GET ${ISSUED}?page_token=${id}`),
  rest(`DELETE ${IMPORTED}/${id}`),
  rest(`POST ${ISSUED}/${id}:rotate`, { body: "{}" }),
]);

const admission = ["no", "no, later", "later"].flatMap((authorization) => [
  rest(`GET ${ISSUED}/a`, { headers: { authorization } }),
  rest(`GET ${ISSUED}?nothing=1`, { headers: { authorization } }),
  rest(`DELETE ${IMPORTED}/a`, { headers: { authorization } }),
  rest(`PATCH ${ISSUED}/a`, { headers: { authorization }, body: "{" }),
]);

const segments = [
  ...["a%2Fb", "a%3Arotate", "%61", "%C3%A9", "%F0%9F%94%91", "a+b", "a;b=c", "a,b", "%25", "%2525", "%00", "..", "."],
  ...["a:b", "a:b:c", "~!$&'()*=@", "a%20b", "%", "%zz", "a%C3", "%C3%28", "%2", "a".repeat(2000)],
].flatMap((segment) => {
  const isUnseen = !decodes(segment);
  return [
    rest(`GET ${ISSUED}/${segment}`, { isTaken: !isUnseen, isUnseen }),
    rest(`POST ${ISSUED}/${segment}:rotate`, { isTaken: !isUnseen, isUnseen, body: "{}" }),
  ];
});

function decodes(text: string): boolean {
  try {
    return decodeURIComponent(text) !== "";
  } catch {
    return false;
  }
}

const paths = [
  rest(`GET /%762alpha1/admin/issuedApiKeys/a`),
  rest(`GET /v2alpha1/admin/issued%41piKeys`),
  rest(`POST /v2alpha1/admin/apiKeys:verif%79`, { body: "{}", isTaken: false }),
  rest(`POST /v2alpha1/admin/%61piKeys:verify`, { body: "{}" }),
  ...[`${ISSUED}/`, `${ISSUED}/a/`, `/${ISSUED}/a`, `${ISSUED}//a`, `/v2alpha1//admin/issuedApiKeys`].map(unknown),
  ...["/", "/v2alpha1", "/v2alpha1/", `${ISSUED}/a/b`, "/v2alpha1%2Fadmin/issuedApiKeys", `${ISSUED}#a`].map(unknown),
  ...[`${ISSUED}/a#b?page_size=1`, `${ISSUED}?page_size=1#b`, `/V2alpha1/admin/issuedApiKeys`].map(unknown),
  rest(`GET http://localhost${ISSUED}/a`, { isTaken: false, ways: isHttp1 }),
  rest(`HEAD ${ISSUED}/a`, { isTaken: false, ways: isHttp2 }),
  ...["OPTIONS", "PUT", "DELETE", "POST", "QUERY"].map((method) => rest(`${method} ${ISSUED}/a`, { isTaken: false })),
  rest(`GET ${ISSUED}/a:rotate`, { isTaken: false }),
  rest(`GET /v2alpha1/admin/apiKeys:verify`, { isTaken: false }),
];

function unknown(path: string): Case {
  return rest(`GET ${path}`, { isTaken: false });
}

const queries = [
  ...["", "page_size=2", "pageSize=2", "page_size=2&page_token=a%2Bb%3D%3D&filter=actor_id%20%3D%20%22a+b%22", "&&"],
  ...["page_size=2&page_size=3", "page_size=2&pageSize=3", "page_size=-1", "page_size=a", "page_size=", "page_size"],
  ...["page_size=99999999999", "nothing=1", "page_size.a=1", "filter=%", "filter=%zz", "filter=%C3", "%66ilter=a"],
  ...["filter=a?b", "filter=a=b", "filter=a;page_size=2", "filter=%00", "filter=[]{}|", "=1"],
].map((query) => rest(`GET ${ISSUED}?${query}`));

const otherQueries = [
  rest(`GET ${ISSUED}/a?key_id=a`),
  rest(`GET ${ISSUED}/a?page_size=1`),
  rest(`DELETE ${IMPORTED}/a?key_id=b`),
  rest(`DELETE ${IMPORTED}/a?a`),
  rest("POST /v2alpha1/admin/apiKeys:verify?", { body: '{"credential":"ok"}' }),
  rest("POST /v2alpha1/admin/apiKeys:verify?credential=ok", { body: "{}" }),
  rest(`POST ${ISSUED}/a:rotate?x=1`, { body: "{}" }),
  rest(`PATCH ${ISSUED}/a?update_mask=name,metadata.team`, { body: '{"name":"b"}' }),
  rest(`PATCH ${ISSUED}/a?updateMask=actorId`, { body: '{"name":"b"}' }),
  rest(`PATCH ${ISSUED}/a?update_mask=`, { body: '{"name":"b"}' }),
  rest(`PATCH ${ISSUED}/a?update_mask=a-b`, { body: '{"name":"b"}' }),
  rest(`PATCH ${ISSUED}/a?update_mask=name`, { body: '{"issued_api_key":{"name":"b"}}' }),
];

const updates = [
  ...['{"name":"b"}', '{"scopes":[]}', '{"issued_api_key":{"name":"b"},"update_mask":"name"}', "{}", "[]", '"a"'],
  ...['{"issuedApiKey":{"name":"b"},"updateMask":"actor_id"}', '{"issued_api_key":{"scopes":[],"metadata":{}}}'],
  ...['{"key_id":"b"}', '{"key_id":"a"}', '{"issued_api_key":{"key_id":"b"}}', '{"update_mask":"a-b"}', "null"],
  ...['{"name":1}', '{"nothing":1}', '{"name":"a","name":"b"}', '{"scopes":[""]}', "{", '{"update_mask":"name"}'],
].map((body) => rest(`PATCH ${ISSUED}/a`, { body }));

const variables = [
  rest(`POST ${ISSUED}/a:rotate`, { body: '{"key_id":"a"}' }),
  rest(`POST ${ISSUED}/a:rotate`, { body: '{"keyId":"b"}' }),
  rest(`POST ${ISSUED}/a:rotate`, { body: '{"nothing":1}' }),
  rest(`POST ${ISSUED}/:rotate`, { body: "{}", isTaken: false }),
  rest("POST /v2alpha1/admin/apiKeys/a:revoke", { body: '{"reason":"REVOCATION_REASON_KEY_COMPROMISE"}' }),
  rest("POST /v2alpha1/admin/apiKeys/a:revoke", { body: '{"reason":"REVOCATION_REASON_NOTHING"}' }),
  rest("POST /v2alpha1/admin/issuedApiKeys/a:revoke", { body: "{}" }),
  rest("POST /v2alpha1/admin/importedApiKeys/a:revoke", { body: '{"collection":"issuedApiKeys"}' }),
  rest("POST /v2alpha1/admin/importedApiKeys/a:revoke", { body: '{"reason":77}' }),
];

const LONG = `{"name":"${"a".repeat(MAX_REQUEST_BYTES)}"}`;
const TYPED = { "content-type": "application/json" };

const bodies = [
  ...[`GET ${ISSUED}/a`, `DELETE ${IMPORTED}/a`].flatMap((line) => [
    ...["{}", " ", '{"key_id":"a"}', LONG].map((body) => rest(line, { body })),
    rest(line, { body: "{}", isChunked: true }),
    rest(line, { body: LONG, isChunked: true }),
    rest(line, { headers: TYPED }),
    rest(line, { headers: { "content-length": "0" } }),
    rest(line, { headers: { ...TYPED, "content-length": "0" } }),
    rest(line, { headers: { "transfer-encoding": "chunked" }, isChunked: true, isTaken: false, ways: isHttp1 }),
    rest(line, { body: "{}", headers: { authorization: "no" } }),
    rest(line, { body: LONG, headers: { authorization: "no" } }),
    rest(line, { body: "{}", headers: { "content-type": null }, isTaken: false, ways: isHttp1 }),
    rest(line, { body: "{}", headers: { "content-type": null }, ways: isHttp2 }),
    rest(line, { body: "{}", headers: { "content-type": null, "content-length": "2" }, isTaken: false }),
    rest(line, { headers: { "content-encoding": "gzip" }, isTaken: false }),
    rest(line, { headers: { expect: "100-continue" }, isTaken: false, ways: isHttp1 }),
    rest(line, { headers: { accept: "text/html", "accept-encoding": "gzip, br", range: "bytes=0-1" } }),
  ]),
  ...[`PATCH ${ISSUED}/a`, `POST ${ISSUED}/a:rotate`].flatMap((line) => [
    rest(line, { body: LONG }),
    rest(line, { body: LONG, isChunked: true }),
    rest(line, { body: "{}", isChunked: true }),
    rest(line, { headers: TYPED }),
    rest(line, { headers: { "content-length": "0" } }),
    rest(line, { isTaken: false }),
    rest(line, { body: "{}", headers: { "content-type": null }, isTaken: false }),
    rest(line, { body: "{}", headers: { "content-type": null, "content-length": "2" }, isTaken: false }),
    rest(line, { body: "{}", headers: { "content-type": "application/json; charset=utf-8" } }),
    rest(line, { body: "{}", headers: { "content-type": "text/plain" }, isTaken: false }),
  ]),
  ...[`GET ${ISSUED}/a`, `DELETE ${IMPORTED}/a`].flatMap((line) =>
    ["text/plain", "nonsense", ""].map((type) => rest(line, { headers: { "content-type": type }, isTaken: false })),
  ),
];

const conditions = [
  rest(`GET ${JWKS}`),
  ...[ETAG, `W/${ETAG}`, `"a", ${ETAG}`, "*", '"a"', ""].flatMap((known) => [
    rest(`GET ${JWKS}`, { headers: { "if-none-match": known } }),
    rest(`GET ${JWKS}`, { headers: { "if-none-match": ["a", known] }, ways: isHttp1 }),
  ]),
  rest(`GET ${JWKS}?x=1`, { headers: { "if-none-match": ETAG } }),
  rest(`GET ${ISSUED}/a`, { headers: { "if-none-match": "*" } }),
  rest(`HEAD ${JWKS}`, { headers: { "if-none-match": ETAG }, isTaken: false }),
];

/** REST alone: the paths that hold a part of the request, and the methods other than POST. */
export const REST_CASES: readonly Case[] = [
  ...behaviours,
  ...admission,
  ...segments,
  ...paths,
  ...queries,
  ...otherQueries,
  ...updates,
  ...variables,
  ...bodies,
  ...conditions,
];
