import { useQuery } from "@connectrpc/connect-query";
import { Alert } from "@mantine/core";
import type { ApiKey } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { keyPage } from "../../texts/key-page.ts";
import { useTexts } from "../../texts/language.tsx";
import { ErrorAlert } from "../error-alert.tsx";

/** Says whether the current secret of a key would be accepted, and if not, why. */
export function ExplainedKey({ apiKey: { keyId } }: { readonly apiKey: ApiKey }) {
  const t = useTexts(keyPage);
  const { data, error } = useQuery(ApiKeysService.method.explainApiKey, { keyId });
  if (data === undefined) return <ErrorAlert error={error} />;
  return data.isValid ? (
    <Alert color="green" role="status">
      {t.accepted}
    </Alert>
  ) : (
    <Alert color="red" role="status">
      {t.rejected(data.errorMessage ?? "")}
    </Alert>
  );
}
