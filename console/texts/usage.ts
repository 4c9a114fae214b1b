import { catalogue } from "./catalogue.ts";

/** Texts of the usage of keys, wherever it is shown. */
export const usage = catalogue({
  en: {
    outcomes: {
      VALID: "Accepted",
      RATE_LIMITED: "Rate-limited",
      QUOTA_EXCEEDED: "Quota exceeded",
      EXPIRED: "Expired",
      KEY_REVOKED: "Revoked",
      DISABLED: "Disabled",
      SECRET_ROTATED: "Old secret",
      INSUFFICIENT_SCOPE: "Missing scope",
      IP_NOT_ALLOWED: "Wrong address",
      AUDIENCE_MISMATCH: "Wrong audience",
    },
    periods: { "24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days" },
    groupings: { outcome: "Outcome", key: "Key", actor: "Actor", limit: "Limit" },
    period: "Period",
    by: "List by",
    actor: "Actor",
    key: "Key id",
    kind: "Kind",
    limit: "Units of the limit",
    outcome: "Outcome",
    any: "any",
    apply: "Apply",
    clear: "Clear",
    verifications: "Verifications",
    units: "Units of limits",
    overTime: (what: string, period: string) => `${what}, last ${period}`,
    asTable: "Show as a table",
    none: "No verifications in this period.",
    noUnits: "No units of limits in this period.",
    delay: "The last 15 seconds may be missing.",
    inUtc: "Days are in UTC.",
    time: "Time",
    total: "Total",
    share: "Share",
    noActor: "deleted keys",
    ranking: (by: string) => `Highest counts by ${by.toLowerCase()}`,
    narrower: "In detail",
    top: (n: number) => `The highest ${n}`,
    sums: (valid: string, rejected: string) => `${valid} accepted, ${rejected} rejected`,
    more: "More about this usage",
    onlyKey: "Only this key",
    whichKeys: "Which keys?",
  },
  de: {
    outcomes: {
      VALID: "Angenommen",
      RATE_LIMITED: "Ratenlimit erreicht",
      QUOTA_EXCEEDED: "Kontingent erschöpft",
      EXPIRED: "Abgelaufen",
      KEY_REVOKED: "Widerrufen",
      DISABLED: "Gesperrt",
      SECRET_ROTATED: "Altes Geheimnis",
      INSUFFICIENT_SCOPE: "Fehlendes Recht",
      IP_NOT_ALLOWED: "Falsche Adresse",
      AUDIENCE_MISMATCH: "Falscher Empfänger",
    },
    periods: { "24h": "24 Stunden", "7d": "7 Tage", "30d": "30 Tage", "90d": "90 Tage" },
    groupings: { outcome: "Ergebnis", key: "Schlüssel", actor: "Akteur", limit: "Limit" },
    period: "Zeitraum",
    by: "Auflisten nach",
    actor: "Akteur",
    key: "Schlüssel-ID",
    kind: "Art",
    limit: "Einheiten des Limits",
    outcome: "Ergebnis",
    any: "alle",
    apply: "Anwenden",
    clear: "Leeren",
    verifications: "Prüfungen",
    units: "Einheiten von Limits",
    overTime: (what: string, period: string) => `${what}, letzte ${period}`,
    asTable: "Als Tabelle zeigen",
    none: "Keine Prüfungen in diesem Zeitraum.",
    noUnits: "Keine Einheiten von Limits in diesem Zeitraum.",
    delay: "Die letzten 15 Sekunden können fehlen.",
    inUtc: "Tage sind in UTC.",
    time: "Zeit",
    total: "Summe",
    share: "Anteil",
    noActor: "gelöschte Schlüssel",
    ranking: (by: string) => `Höchste Zahlen nach ${by}`,
    narrower: "Im Einzelnen",
    top: (n: number) => `Die höchsten ${n}`,
    sums: (valid: string, rejected: string) => `${valid} angenommen, ${rejected} abgelehnt`,
    more: "Mehr zu dieser Nutzung",
    onlyKey: "Nur dieser Schlüssel",
    whichKeys: "Welche Schlüssel?",
  },
});

type Texts = (typeof usage)["en"];

/** The outcomes in the order in which they are shown. A later release of the server may add others. */
export const OUTCOMES = Object.keys(usage.en.outcomes);

/** Returns what people call an outcome. */
export function outcomeName({ outcomes }: Texts, outcome: string): string {
  return isKnown(outcomes, outcome) ? outcomes[outcome] : outcome;
}

function isKnown(outcomes: Texts["outcomes"], outcome: string): outcome is keyof Texts["outcomes"] {
  return Object.hasOwn(outcomes, outcome);
}
