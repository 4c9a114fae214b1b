import { useTexts } from "../../texts/language.tsx";
import { usage } from "../../texts/usage.ts";
import { LinkAnchor } from "../links.tsx";

/** A link to the page of the usage, for a key. */
export function UsageLink({ keyId }: { readonly keyId: string }) {
  return (
    <LinkAnchor to="/usage" search={{ key: [keyId], period: ["30d"] }} className="small">
      {useTexts(usage).more}
    </LinkAnchor>
  );
}
