import { NativeSelect } from "@mantine/core";
import { RevocationReason } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { AuthMethod } from "../../../gen/keyhold/v2alpha1/callers_pb.js";
import { useCaller } from "../../session/permissions.ts";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";

const REASONS = [
  RevocationReason.UNSPECIFIED,
  RevocationReason.KEY_COMPROMISE,
  RevocationReason.AFFILIATION_CHANGED,
  RevocationReason.SUPERSEDED,
  RevocationReason.PRIVILEGE_WITHDRAWN,
] as const;

/** What the owner of a key can say of it. */
const OWNERS: readonly RevocationReason[] = [
  RevocationReason.UNSPECIFIED,
  RevocationReason.KEY_COMPROMISE,
  RevocationReason.SUPERSEDED,
];

/** The field `reason` of a form: the number of a `RevocationReason`. */
export function ReasonSelect() {
  const t = useTexts(key);
  const reasons = useCaller().authMethod === AuthMethod.KEY_PAGE ? OWNERS : REASONS;
  return (
    <NativeSelect
      name="reason"
      label={t.reason}
      data={reasons.map((value) => ({ value: String(value), label: t.reasons[value] }))}
    />
  );
}
