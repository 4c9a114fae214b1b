import { useMutation } from "@connectrpc/connect-query";
import { ActorsService } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import { actors } from "../../texts/actors.ts";
import { useTexts } from "../../texts/language.tsx";
import { ConfirmButton } from "../confirm-dialog.tsx";

interface Props {
  readonly actorId: string;
  readonly onDone: () => Promise<void>;
}

export function DeleteActorLimits({ actorId, onDone }: Props) {
  const t = useTexts(actors);
  const deletion = useMutation(ActorsService.method.deleteActor, { onSuccess: onDone });
  return (
    <ConfirmButton
      label={t.deleteAll}
      button={{ size: "xs", variant: "outline", color: "red" }}
      title={t.deleteTitle}
      description={t.deleteDetail(actorId)}
      confirmLabel={t.deleteConfirm}
      isDangerous
      change={deletion}
      onConfirm={(_, onSuccess) => deletion.mutate({ actorId }, { onSuccess })}
    />
  );
}
