import { describe, expect, test } from "vitest";
import { addressOf, parseConnectionUrl } from "../../src/postgres/connection/connection-url.ts";
import { table } from "../support/conformance.ts";

const PASSWORD = "p4ssw0rd";
const at = (hosts: string, query = "") => `postgres://keyhold:${PASSWORD}@${hosts}/keys${query}`;

describe("the hosts of a URL are parsed like in libpq", () => {
  const HOSTS = table<readonly [string, readonly string[]]>([
    [at("db"), ["db:5432"]],
    [at("db:5433"), ["db:5433"]],
    [at("db:"), ["db:5432"]],
    [at("h1:5433,h2:5434"), ["h1:5433", "h2:5434"]],
    [at("h1,h2:5434"), ["h1:5432", "h2:5434"]],
    [at("h1:5433,h2"), ["h1:5433", "h2:5432"]],
    [at("h1,h2,h3"), ["h1:5432", "h2:5432", "h3:5432"]],
    [at("10.0.0.1,[fd00::1]:5433,[::1]"), ["10.0.0.1:5432", "[fd00::1]:5433", "[::1]:5432"]],
    [at("%2Frun%2Fpostgresql"), ["/run/postgresql/.s.PGSQL.5432"]],
    [at("%2Frun%2Fpostgresql:5433,db"), ["/run/postgresql/.s.PGSQL.5433", "db:5432"]],
    [at("%2Frun%2Fa%2Cb"), ["/run/a,b/.s.PGSQL.5432"]],
    [at("db%2Dprimary.example"), ["db-primary.example:5432"]],
    [at("", "?host=h1,h2"), ["h1:5432", "h2:5432"]],
    [at("", "?host=h1,h2&port=5433"), ["h1:5433", "h2:5433"]],
    [at("", "?host=h1,h2&port=5433,"), ["h1:5433", "h2:5432"]],
    [at("", "?host=/run/postgresql"), ["/run/postgresql/.s.PGSQL.5432"]],
    [at("db:1", "?port=5433"), ["db:5433"]],
    ["postgres:///keys", ["localhost:5432"]],
    ["postgresql://h1,h2", ["h1:5432", "h2:5432"]],
    ["POSTGRES://h1", ["h1:5432"]],
  ]);
  test.each(HOSTS)("%s", (url, hosts) => {
    expect(parseConnectionUrl(url).hosts.map(addressOf)).toEqual(hosts);
  });
});

test("user, database and parameters are percent-decoded, and the client gets everything but the hosts", () => {
  const url = `postgres://key%40hold:p%2Cw@h1,h2:5433/my%20keys?sslmode=verify-full&target_session_attrs=primary&port=1#x`;
  const { user, database, parameters, withoutHosts } = parseConnectionUrl(url);
  expect({ user, database, parameters: [...parameters] }).toEqual({
    user: "key@hold",
    database: "my keys",
    parameters: [["sslmode", "verify-full"]],
  });
  expect(withoutHosts).toBe("postgres://key%40hold:p%2Cw@localhost/my%20keys?sslmode=verify-full");
});

test("an unencoded @ belongs to the password", () => {
  const { hosts, user } = parseConnectionUrl("postgres://keyhold:p@ss,w:rd@h1:5433/keys");
  expect({ hosts, user }).toEqual({ hosts: [{ name: "h1", port: 5433 }], user: "keyhold" });
});

describe("a URL is refused, without showing it, when it", () => {
  const REFUSED = table<readonly [string, string]>([
    ["h1:5432", "must be of the form postgres://"],
    [`mysql://keyhold:${PASSWORD}@h1/keys`, "must be of the form postgres://"],
    ["postgres:keyhold", "must be of the form"],
    [at("h1,,h2"), "has an empty host"],
    [at("h1,"), "has an empty host"],
    [at(",h2"), "has an empty host"],
    [at("h1:port,h2"), "has a port that is not a number from 1 to 65535"],
    [at("h1:0"), "has a port that"],
    [at("h1:65536"), "has a port that"],
    [at("h1:-1"), "has a port that"],
    [at("h1,h2:1:2"), "has a port that"],
    [at("fd00::1"), "has a port that"],
    [at("[fd00::1"), "has a host that is neither a name nor an IPv6 address in brackets"],
    [at("[10.0.0.1]"), "has a host that is neither"],
    [at("[fd00::1]x"), "has a host that is neither"],
    [at("h1,h 2"), "has a host name with invalid characters"],
    [at("h%3C1"), "has a host name with invalid characters"],
    [at("h%zz"), "has a malformed percent-encoding: write %25"],
    [`postgres://keyhold:${PASSWORD}%@h1/keys`, "has a malformed percent-encoding"],
    [`postgres://keyhold:50%${PASSWORD}/x@h1/keys`, "has a port that"],
    [at("", "?host=h1,h2,h3&port=1,2"), "has 3 hosts and 2 ports: set one port for each host"],
    [
      at("h1", "?target_session_attrs=any"),
      "has target_session_attrs=any: must be primary, the default (a standby is read-only",
    ],
    [
      at("h1", "?target_session_attrs=read-write"),
      "has target_session_attrs=read-write: must be primary, the default (use primary",
    ],
    [at("h1", "?target_session_attrs=read-only"), "has target_session_attrs=read-only: must be primary"],
    [at("h1", "?target_session_attrs=standby"), "has target_session_attrs=standby: must be primary"],
    [at("h1", "?target_session_attrs=prefer-standby"), "has target_session_attrs=prefer-standby: must be primary"],
    [at("h1", "?target_session_attrs="), "has target_session_attrs: must be primary, the default"],
    [at("h1", `?target_session_attrs=${PASSWORD}`), "has target_session_attrs: must be primary, the default"],
  ]);
  test.each(REFUSED)("%s", (url, why) => {
    const refused = expect.objectContaining({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining(`KEYHOLD_DATABASE_URL: ${why}`),
    });
    expect(() => parseConnectionUrl(url, "KEYHOLD_DATABASE_URL")).toThrow(refused);
    expect(() => parseConnectionUrl(url)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(PASSWORD) }),
    );
  });
});
