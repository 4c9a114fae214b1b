import { pathToFileURL } from "node:url";
import type { FastifyReply } from "fastify";
import type { Guard, GuardedRpc } from "../auth/guard.ts";
import type { ConsoleFiles } from "../console/files.ts";
import { registerKeyPage } from "../console/key-page.ts";
import { SealedCookie } from "../console/sealed-cookie.ts";
import {
  KEY_PAGE_LIFETIME,
  type KeyPageSession,
  type KeyPagesContext,
  LINK_LIFETIME,
  type OpenKeyPageSession,
} from "../keys/key-page.ts";
import { StaticFile } from "../lib/static-file.ts";
import { createKeyPageStore } from "../postgres/keys/key-page-store.ts";
import { Sealer } from "../token/sealer.ts";
import type { RegisterPage } from "../transport/transport.ts";
import { RestCall } from "../transport/wire/fastify-call.ts";
import type { Config } from "./config/config.ts";
import { originOf } from "./console.ts";
import type { Resources } from "./resources.ts";

/** What the key page and its sessions need. */
export interface KeyPages {
  readonly context: KeyPagesContext;
  readonly sessions: Sealer<OpenKeyPageSession>;
  /** Returns the page; undefined if there is none. */
  page(guard: Guard): RegisterPage | undefined;
}

/** For the log, and the limit on calls without a credential. */
const LINK: GuardedRpc = { name: "keys/session", method: { name: "session" }, policy: "public" };
const SESSION: GuardedRpc = { ...LINK, policy: "authenticated" };

/** `files` is null if they are not built. */
export function createKeyPages(
  config: Config,
  { database, rings, keys: { clock, random } }: Resources,
  files: ConsoleFiles | null,
): KeyPages {
  const { isOn, frameAncestors, name, logo, color } = config.keyPages;
  const store = createKeyPageStore(database);
  const sealer = <T extends object>(purpose: string, lifetime: number) =>
    new Sealer<T>({ purpose, lifetime }, rings.consoleSession, clock);
  const links = sealer<KeyPageSession>("keyhold-key-page-link", LINK_LIFETIME);
  const sessions = sealer<OpenKeyPageSession>("keyhold-key-page", KEY_PAGE_LIFETIME);
  const unavailable = isOn ? (files === null ? NOT_BUILT : null) : OFF;
  const page = (guard: Guard): RegisterPage | undefined => {
    if (!isOn || files === null) return undefined;
    // In a frame of another site, browsers send no cookie that is `Strict`.
    const sameSite = frameAncestors.length === 0 ? "Strict" : "None";
    const options = {
      ...{ files, frameAncestors, links, sessions, store },
      branding: { name, logo: logo && { file: new StaticFile(pathToFileURL(logo.file)), type: logo.type }, color },
      cookie: new SealedCookie({ name: "keyhold-key-page", sameSite }, sessions),
      admit: (reply: FastifyReply) => void guard(LINK, new RestCall(reply)),
      principalOf: (reply: FastifyReply) => guard(SESSION, new RestCall(reply)),
    };
    return (fastify, serveApi) => registerKeyPage(fastify, options, serveApi);
  };
  return { context: { store, clock, random, links, unavailable, originOf: originOf(config) }, sessions, page };
}

const OFF = "the key page is off; set KEYHOLD_KEY_PAGES=on";
const NOT_BUILT = "the key page is not built; run npm run build --workspace=console";
