import { Center, Loader } from "@mantine/core";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";

export function PageLoader() {
  const t = useTexts(common);
  return (
    <Center mih="12rem">
      <Loader role="status" aria-label={t.loading} />
    </Center>
  );
}
