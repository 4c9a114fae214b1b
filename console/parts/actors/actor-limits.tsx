import { createConnectQueryKey, useMutation } from "@connectrpc/connect-query";
import { Alert, Button, Group, List, Stack } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { ActorsService } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import { useCan } from "../../session/permissions.ts";
import { actors } from "../../texts/actors.ts";
import { common } from "../../texts/common.ts";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { type Limits, LimitsEditor, limitsOf } from "../limits-editor.tsx";
import { AdjustActorQuota } from "./adjust-actor-quota.tsx";
import { DeleteActorLimits } from "./delete-actor-limits.tsx";

const { updateActor, adjustActorQuota, deleteActor } = ActorsService.method;

interface Props {
  readonly actorId: string;
  readonly current: Limits;
  /** Whether the server has the actor: limits were set for it. */
  readonly isStored: boolean;
}

/** The limits of an actor, with what the caller may change of them. */
export function ActorLimits({ actorId, current, isStored }: Props) {
  const t = useTexts(actors);
  const can = useCan();
  const [done, setDone] = useState<string | null>(null);
  const client = useQueryClient();
  const changed = async (message: string) => {
    await client.invalidateQueries({
      queryKey: createConnectQueryKey({ schema: ActorsService, cardinality: undefined }),
    });
    setDone(message);
  };
  return (
    <Stack gap="sm">
      {can(updateActor) ? (
        <EditLimits actorId={actorId} current={current} onEdit={() => setDone(null)} onSaved={() => changed(t.saved)} />
      ) : (
        <LimitList limits={limitsOf(current)} />
      )}
      {done !== null && <Alert role="status" color="green" title={done} />}
      <Group gap="xs">
        {can(adjustActorQuota) && current.quotas.length > 0 && (
          <AdjustActorQuota
            actorId={actorId}
            names={current.quotas.map(({ name }) => name)}
            onDone={(name) => changed(t.adjusted(name))}
          />
        )}
        {can(deleteActor) && isStored && <DeleteActorLimits actorId={actorId} onDone={() => changed(t.deleted)} />}
      </Group>
    </Stack>
  );
}

interface EditProps {
  readonly actorId: string;
  readonly current: Limits;
  readonly onEdit: () => void;
  readonly onSaved: () => Promise<void>;
}

function EditLimits({ actorId, current, onEdit, onSaved }: EditProps) {
  const t = useTexts(actors);
  const { save } = useTexts(common);
  const [edited, setEdited] = useState<Limits | null>(null);
  const { mutate, error, isPending, reset } = useMutation(updateActor, {
    onSuccess: async () => {
      await onSaved();
      setEdited(null);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const updateMask = { paths: ["rate_limits", "quotas"] };
    if (edited !== null) mutate({ actor: { actorId, ...edited }, updateMask });
  };
  const edit = (value: Limits | null) => {
    setEdited(value);
    onEdit();
  };
  const discard = () => {
    reset();
    edit(null);
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <LimitsEditor value={edited ?? limitsOf(current)} error={error} onChange={edit} />
        <ErrorAlert error={error} />
        {edited !== null && (
          <Group gap="xs">
            <Button type="submit" loading={isPending}>
              {save}
            </Button>
            <Button variant="default" onClick={discard}>
              {t.discard}
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  );
}

function LimitList({ limits: { rateLimits, quotas } }: { readonly limits: Limits }) {
  const t = useTexts(key);
  return (
    <List>
      {rateLimits.map(({ name, quota, window }) => (
        <List.Item key={name}>{`${name}: ${t.rate(quota, window)}`}</List.Item>
      ))}
      {quotas.map(({ name, limit, period }) => (
        <List.Item key={name}>{`${name}: ${t.quota(limit, t.periods[period])}`}</List.Item>
      ))}
    </List>
  );
}
