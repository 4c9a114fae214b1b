import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useLanguage } from "../texts/language.tsx";

interface Props {
  readonly date: Date | Timestamp;
  readonly withSeconds?: boolean;
}

/** Shows a time in the time zone of the browser, and in UTC as its title. */
export function Time({ date, withSeconds = false }: Props) {
  const { language } = useLanguage();
  const time = date instanceof Date ? date : timestampDate(date);
  const utc = time.toISOString();
  return (
    <time dateTime={utc} title={utc.replace("T", " ").replace(/(?:\.\d+)?Z$/, " UTC")}>
      {formatOf(language, withSeconds ? "medium" : "short").format(time)}
    </time>
  );
}

/** A format takes much longer to create than to use, and a table has hundreds of times. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(language: string, timeStyle: "medium" | "short"): Intl.DateTimeFormat {
  const name = `${language} ${timeStyle}`;
  const format = formats.get(name) ?? new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle });
  formats.set(name, format);
  return format;
}
