import { KeyStatus } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";
import { LightBadge } from "../light-badge.tsx";

const COLORS: Readonly<Record<KeyStatus, string>> = {
  [KeyStatus.UNSPECIFIED]: "gray",
  [KeyStatus.ACTIVE]: "green",
  [KeyStatus.REVOKED]: "red",
  [KeyStatus.EXPIRED]: "gray",
  [KeyStatus.DISABLED]: "yellow",
};

export function StatusBadge({ status }: { readonly status: KeyStatus }) {
  return <LightBadge color={COLORS[status]}>{useTexts(key).statuses[status]}</LightBadge>;
}
