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
      {time.toLocaleString(language, { dateStyle: "medium", timeStyle: withSeconds ? "medium" : "short" })}
    </time>
  );
}
