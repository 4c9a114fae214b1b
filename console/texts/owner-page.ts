import { catalogue } from "./catalogue.ts";

/** Texts of the page on which owners manage their keys. */
export const ownerPage = catalogue({
  en: {
    title: "Your API keys",
    apiKeys: "API keys",
    keysOf: (actorId: string) => `Keys of ${actorId}`,
    back: (host: string) => `Back to ${host}`,
    create: "New key",
    empty: "There are no keys yet.",
    emptyDetail: "A key lets a program use the service on your behalf.",
    why: {
      revoked: "The service rejects this key. That cannot be undone.",
      expired: "The service rejects this key because it has expired.",
      disabled: "The service has disabled this key, and rejects it until it is enabled again.",
    },
    showUsage: "Show the usage",
    hideUsage: "Hide the usage",
    scopesHint: "What the key permits",
    lifetime: "The key expires in",
    noExpiry: "Default of the service",
    atMost: (duration: string) => `At most ${duration}`,
    rejected: "This link can no longer be used",
    rejectedDetail:
      "A link opens this page only once, and expires after some minutes. This one was used, has expired or is unknown. Open the page again from the application that led you here: it creates a new link.",
    ended: "Your session has ended",
    none: "There is no session in this browser",
    again: "Open this page again from the application that led you here.",
    notStored: "The browser has not stored the session",
    notStoredDetail:
      "It may block cookies of pages within other pages. Allow them, or open this page in a window of its own, by a new link.",
  },
  de: {
    title: "Ihre API-Schlüssel",
    apiKeys: "API-Schlüssel",
    keysOf: (actorId: string) => `Schlüssel von ${actorId}`,
    back: (host: string) => `Zurück zu ${host}`,
    create: "Neuer Schlüssel",
    empty: "Es gibt noch keine Schlüssel.",
    emptyDetail: "Mit einem Schlüssel kann ein Programm den Dienst in Ihrem Namen benutzen.",
    why: {
      revoked: "Der Dienst lehnt diesen Schlüssel ab. Das lässt sich nicht rückgängig machen.",
      expired: "Der Dienst lehnt diesen Schlüssel ab, weil er abgelaufen ist.",
      disabled: "Der Dienst hat diesen Schlüssel gesperrt und lehnt ihn ab, bis er wieder entsperrt wird.",
    },
    showUsage: "Nutzung zeigen",
    hideUsage: "Nutzung ausblenden",
    scopesHint: "Was der Schlüssel erlaubt",
    lifetime: "Der Schlüssel läuft ab in",
    noExpiry: "Vorgabe des Dienstes",
    atMost: (duration: string) => `Höchstens ${duration}`,
    rejected: "Dieser Link gilt nicht mehr",
    rejectedDetail:
      "Ein Link öffnet diese Seite nur einmal und läuft nach einigen Minuten ab. Dieser wurde schon benutzt, ist abgelaufen oder unbekannt. Öffnen Sie die Seite erneut aus der Anwendung, die Sie hierher geführt hat: Sie erzeugt einen neuen Link.",
    ended: "Ihre Sitzung ist beendet",
    none: "In diesem Browser gibt es keine Sitzung",
    again: "Öffnen Sie diese Seite erneut aus der Anwendung, die Sie hierher geführt hat.",
    notStored: "Der Browser hat die Sitzung nicht gespeichert",
    notStoredDetail:
      "Vielleicht blockiert er Cookies von Seiten innerhalb anderer Seiten. Erlauben Sie diese, oder öffnen Sie diese Seite mit einem neuen Link in einem eigenen Fenster.",
  },
});
