import { NativeSelect } from "@mantine/core";
import { RevocationReason } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";

const REASONS = [
  RevocationReason.UNSPECIFIED,
  RevocationReason.KEY_COMPROMISE,
  RevocationReason.AFFILIATION_CHANGED,
  RevocationReason.SUPERSEDED,
  RevocationReason.PRIVILEGE_WITHDRAWN,
] as const;

/** The field `reason` of a form: the number of a `RevocationReason`. */
export function ReasonSelect() {
  const t = useTexts(key);
  return (
    <NativeSelect
      name="reason"
      label={t.reason}
      data={REASONS.map((value) => ({ value: String(value), label: t.reasons[value] }))}
    />
  );
}
