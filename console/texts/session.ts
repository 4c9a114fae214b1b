import { catalogue } from "./catalogue.ts";

/** Texts of signing in, and of the menu of the session. */
export const session = catalogue({
  en: {
    signIn: "Sign in",
    signInWith: (issuer: string) => `Sign in with ${issuer}`,
    or: "or",
    noWay:
      "This server accepts only access tokens of its identity provider, and no sign-in with it is configured. Ask the operator to set KEYHOLD_CONSOLE_OIDC_CLIENT_ID.",
    failed: "The sign-in failed",
    failures: {
      expired: "The sign-in took too long, or was not begun in this browser. Sign in again.",
      mismatch: "The response belongs to another sign-in. Finish the one that you began last, or sign in again.",
      denied: "The identity provider denied access, or you cancelled.",
      rejected:
        "The identity provider or this server rejected the sign-in. Sign in again; if it fails again, the operator finds the reason in the log of the server.",
      no_access_token:
        "The identity provider gave no access token that this server accepts. Ask the operator to check the audience (KEYHOLD_OIDC_AUDIENCE).",
      token_too_long:
        "The access token of the identity provider is too long for a cookie. Ask the operator to reduce its claims.",
      unavailable: "The identity provider is unreachable. Try again later.",
      unknown_address:
        "The server does not know the address at which you opened this page. Ask the operator to set KEYHOLD_CONSOLE_URL.",
    },
    notPermitted: "You may not use this console",
    signOut: "Sign out",
    token: "Admin token",
    tokenHint: "Only this server receives it, and keeps it in an encrypted cookie that scripts cannot read.",
    malformed: "Enter an admin token, without spaces.",
    first: "No admin token yet? Create the first one on the server:",
    ended: "Your session has ended",
    anonymous: "This server requires no sign-in",
    menu: "Session and settings",
    expires: "The session ends at the latest",
    restricted: "Only keys of the actors",
    language: "Language",
    colorScheme: "Color scheme",
    schemes: { light: "Light", dark: "Dark", auto: "System" },
  },
  de: {
    signIn: "Anmelden",
    signInWith: (issuer: string) => `Mit ${issuer} anmelden`,
    or: "oder",
    noWay:
      "Dieser Server akzeptiert nur Zugriffstoken seines Identitätsanbieters, und eine Anmeldung dort ist nicht eingerichtet. Bitten Sie den Betreiber, KEYHOLD_CONSOLE_OIDC_CLIENT_ID zu setzen.",
    failed: "Die Anmeldung ist fehlgeschlagen",
    failures: {
      expired:
        "Die Anmeldung hat zu lange gedauert oder wurde nicht in diesem Browser begonnen. Melden Sie sich erneut an.",
      mismatch:
        "Die Antwort gehört zu einer anderen Anmeldung. Schließen Sie die zuletzt begonnene ab, oder melden Sie sich erneut an.",
      denied: "Der Identitätsanbieter hat den Zugriff verweigert, oder Sie haben abgebrochen.",
      rejected:
        "Der Identitätsanbieter oder dieser Server hat die Anmeldung abgelehnt. Melden Sie sich erneut an; schlägt es wieder fehl, findet der Betreiber den Grund im Protokoll des Servers.",
      no_access_token:
        "Der Identitätsanbieter hat kein Zugriffstoken ausgestellt, das dieser Server akzeptiert. Bitten Sie den Betreiber, die Audience (KEYHOLD_OIDC_AUDIENCE) zu prüfen.",
      token_too_long:
        "Das Zugriffstoken des Identitätsanbieters ist zu lang für ein Cookie. Bitten Sie den Betreiber, es auf weniger Claims zu beschränken.",
      unavailable: "Der Identitätsanbieter ist nicht erreichbar. Versuchen Sie es später erneut.",
      unknown_address:
        "Der Server kennt die Adresse nicht, unter der Sie diese Seite geöffnet haben. Bitten Sie den Betreiber, KEYHOLD_CONSOLE_URL zu setzen.",
    },
    notPermitted: "Sie dürfen diese Konsole nicht benutzen",
    signOut: "Abmelden",
    token: "Admin-Token",
    tokenHint:
      "Nur dieser Server erhält es und bewahrt es in einem verschlüsselten Cookie auf, das Skripte nicht lesen können.",
    malformed: "Geben Sie ein Admin-Token ohne Leerzeichen ein.",
    first: "Noch kein Admin-Token? Erzeugen Sie das erste auf dem Server:",
    ended: "Ihre Sitzung ist beendet",
    anonymous: "Dieser Server verlangt keine Anmeldung",
    menu: "Sitzung und Einstellungen",
    expires: "Die Sitzung endet spätestens",
    restricted: "Nur Schlüssel der Akteure",
    language: "Sprache",
    colorScheme: "Farbschema",
    schemes: { light: "Hell", dark: "Dunkel", auto: "System" },
  },
});
