import { catalogue } from "./catalogue.ts";

/** Texts of the page of HMAC keys. */
export const hmacKeys = catalogue({
  en: {
    about:
      "With the key of their HMAC, you can import API keys of which another system has kept only an HMAC. A key is adopted when it is first verified; its HMAC key is then no longer needed for it.",
    create: "New HMAC key",
    createDetail: "The server encrypts the key, and never shows it again.",
    store: "Store",
    id: "HMAC key id",
    idHint: "1 to 64 letters, digits, “.”, “_” and “-”; imports refer to it",
    key: "Key",
    keyHint: "1 to 1024 bytes",
    encoding: "Encoding of the key",
    encodings: { 1: "Hexadecimal", 2: "Base64", 3: "Base64url", 4: "Plain text (UTF-8)" },
    notAdopted: "Keys not adopted",
    actions: "Actions",
    needed: "needed",
    delete: "Delete",
    deleteNamed: (id: string) => `Delete the HMAC key ${id}`,
    deleteDetail:
      "No stored key depends on it. Keys that are known by an HMAC of this key can then no longer be imported.",
  },
  de: {
    about:
      "Mit dem Schlüssel ihres HMAC können Sie API-Schlüssel importieren, von denen ein anderes System nur einen HMAC aufbewahrt hat. Ein Schlüssel wird bei der ersten Prüfung übernommen; danach wird der HMAC-Schlüssel für ihn nicht mehr benötigt.",
    create: "Neuer HMAC-Schlüssel",
    createDetail: "Der Server verschlüsselt den Schlüssel und zeigt ihn nie wieder an.",
    store: "Speichern",
    id: "HMAC-Schlüssel-ID",
    idHint: "1 bis 64 Buchstaben, Ziffern, „.“, „_“ und „-“; Importe beziehen sich darauf",
    key: "Schlüssel",
    keyHint: "1 bis 1024 Bytes",
    encoding: "Kodierung des Schlüssels",
    encodings: { 1: "Hexadezimal", 2: "Base64", 3: "Base64url", 4: "Klartext (UTF-8)" },
    notAdopted: "Nicht übernommene Schlüssel",
    actions: "Aktionen",
    needed: "wird benötigt",
    delete: "Löschen",
    deleteNamed: (id: string) => `HMAC-Schlüssel ${id} löschen`,
    deleteDetail:
      "Kein gespeicherter Schlüssel hängt von ihm ab. Schlüssel, von denen ein HMAC mit diesem Schlüssel bekannt ist, können dann nicht mehr importiert werden.",
  },
});
