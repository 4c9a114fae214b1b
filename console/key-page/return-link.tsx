import { Anchor } from "@mantine/core";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { isEmbedded } from "./embed.ts";

/** A link back to the application that has led here. Undefined: none is shown. */
export function ReturnLink({ url }: { readonly url: string | undefined }) {
  const t = useTexts(ownerPage);
  const target = url === undefined ? null : URL.parse(url);
  if (target === null || !/^https?:$/.test(target.protocol)) return null;
  return (
    <Anchor href={target.href} target={isEmbedded ? "_top" : undefined} className="breakable">
      {t.back(target.host)}
    </Anchor>
  );
}
