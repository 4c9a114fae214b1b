import { catalogue, counted } from "./catalogue.ts";

/** Texts of the list of keys. */
export const keys = catalogue({
  en: {
    search: "Search keys",
    searchHint: "Name, last four characters, actor or key id",
    filterHint: "An AIP-160 expression, such as metadata.env=prod",
    active: "Active",
    expiring: "Expiring within 30 days",
    unused: "Unused for 90 days",
    adminTokens: "Admin tokens",
    revoke: "Revoke all that match",
    disable: "Disable all that match",
    counting: "Counting the keys …",
    revokes: (n: number) =>
      `${counted("en", n, "key matches", "keys match")}, and will be revoked, with all tokens derived from them. This cannot be undone.`,
    disables: (n: number) =>
      `${counted("en", n, "active key matches", "active keys match")}, and will be disabled until they are enabled again.`,
    done: (n: number, total: number) => `${n.toLocaleString("en")} of ${total.toLocaleString("en")} are done.`,
    shown: (n: number, isAll: boolean) =>
      isAll ? counted("en", n, "key", "keys") : `The newest ${n.toLocaleString("en")} keys that match`,
  },
  de: {
    search: "Schlüssel suchen",
    searchHint: "Name, letzte vier Zeichen, Akteur oder Schlüssel-ID",
    filterHint: "Ein AIP-160-Ausdruck, etwa metadata.env=prod",
    active: "Aktiv",
    expiring: "Läuft in 30 Tagen ab",
    unused: "Seit 90 Tagen unbenutzt",
    adminTokens: "Admin-Tokens",
    revoke: "Alle passenden widerrufen",
    disable: "Alle passenden sperren",
    counting: "Die Schlüssel werden gezählt …",
    revokes: (n: number) =>
      `${counted("de", n, "Schlüssel passt und wird", "Schlüssel passen und werden")} widerrufen, mit allen davon abgeleiteten Tokens. Das lässt sich nicht rückgängig machen.`,
    disables: (n: number) =>
      `${counted("de", n, "aktiver Schlüssel passt und wird", "aktive Schlüssel passen und werden")} gesperrt, bis sie wieder entsperrt werden.`,
    done: (n: number, total: number) => `${n.toLocaleString("de")} von ${total.toLocaleString("de")} sind erledigt.`,
    shown: (n: number, isAll: boolean) =>
      isAll ? counted("de", n, "Schlüssel", "Schlüssel") : `Die neuesten ${n.toLocaleString("de")} passenden Schlüssel`,
  },
});
