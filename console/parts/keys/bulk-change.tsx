import type { DescMethodUnary } from "@bufbuild/protobuf";
import { callUnaryMethod, useTransport } from "@connectrpc/connect-query";
import { Progress, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiKeysService, type BulkRevokeApiKeysResponse } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { useRefresh } from "../../session/refresh.ts";
import { key } from "../../texts/key.ts";
import { keys } from "../../texts/keys.ts";
import { useTexts } from "../../texts/language.tsx";
import { ConfirmDialog } from "../confirm-dialog.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { ReasonSelect } from "./reason-select.tsx";

const { bulkRevokeApiKeys, bulkDisableApiKeys } = ApiKeysService.method;

/** Nothing can be confirmed before the count is known. */
const COUNTING = { isPending: true, error: null };

/** What both RPCs return. */
type Counts = Pick<BulkRevokeApiKeysResponse, "matchedCount" | "changedCount" | "done" | "requestId">;

interface Props {
  readonly action: "revoke" | "disable";
  readonly filter: string;
  readonly onClose: () => void;
}

/** Changes all keys that match a filter. Says first how many they are, and changes nothing if they have become others. */
export function BulkChange({ action, filter, onClose }: Props) {
  const t = useTexts(keys);
  const names = useTexts(key);
  const transport = useTransport();
  const refresh = useRefresh();
  const [changed, setChanged] = useState<Counts | null>(null);
  const call = (request: object): Promise<Counts> =>
    action === "revoke"
      ? callUnaryMethod(transport, bulkRevokeApiKeys, { filter, ...request })
      : callUnaryMethod(transport, bulkDisableApiKeys, { filter, ...request });
  // Another count for each dialog.
  const [countKey] = useState(() => ["count of a bulk change", crypto.randomUUID()]);
  const count = useQuery({
    queryKey: countKey,
    queryFn: () => call({ validateOnly: true }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const change = useMutation({
    mutationFn: async (request: object) => {
      let state = await call({ ...request, expectedCount: count.data?.matchedCount });
      for (setChanged(state); !state.done; setChanged(state))
        state = await call({ ...request, requestId: state.requestId });
    },
    onSuccess: onClose,
    onSettled: () => refresh(),
  });
  const confirm = (fields: FormData) => {
    const text = String(fields.get("description"));
    change.mutate(
      action === "revoke" ? { reason: Number(fields.get("reason")), revocationDescription: text } : { reason: text },
    );
  };
  const matched = count.data?.matchedCount;
  const what = action === "revoke" ? t.revokes : t.disables;
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={t[action]}
      description={<span role="status">{matched === undefined ? t.counting : what(matched)}</span>}
      confirmLabel={t[action]}
      isDangerous
      typedName={String(matched ?? "")}
      change={count.isPending ? COUNTING : change}
      onConfirm={confirm}
    >
      <ErrorAlert error={count.error} />
      {action === "revoke" && <ReasonSelect />}
      <TextInput name="description" label={names.description} maxLength={1000} />
      {changed !== null && <BulkProgress {...changed} />}
    </ConfirmDialog>
  );
}

function BulkProgress({ changedCount, matchedCount }: Counts) {
  const t = useTexts(keys);
  const text = t.done(changedCount, matchedCount);
  return (
    <Stack gap={4}>
      <Progress value={matchedCount === 0 ? 100 : (100 * changedCount) / matchedCount} aria-label={text} />
      <Text size="sm" role="status">
        {text}
      </Text>
    </Stack>
  );
}

/** The method of an action, for the rights of the caller. */
export const BULK_METHODS: Readonly<Record<Props["action"], DescMethodUnary>> = {
  revoke: bulkRevokeApiKeys,
  disable: bulkDisableApiKeys,
};
