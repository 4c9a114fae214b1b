import { createConnectTransport } from "@connectrpc/connect-web";
import { pagePath } from "./page-settings.ts";

/** The API with the session of this page as its caller. Only the server can read the session, which is a cookie. */
export const transport = createConnectTransport({ baseUrl: `${location.origin}${pagePath}/api` });
