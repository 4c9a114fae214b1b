import { durationMs } from "@bufbuild/protobuf/wkt";
import { Button, Modal, Stack, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { WebhookAttempt, WebhookDelivery } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { common } from "../../texts/common.ts";
import { useTexts } from "../../texts/language.tsx";
import { webhooks } from "../../texts/webhooks.ts";
import { ErrorAlert } from "../error-alert.tsx";
import { Fact, Facts } from "../facts.tsx";
import { PageLoader } from "../page-loader.tsx";
import { Time } from "../time.tsx";
import type { Redelivery } from "./use-webhook-deliveries.ts";
import { DeliveryState } from "./webhook-states.tsx";

interface Props {
  /** The delivery that the URL names; undefined: none. */
  readonly id: string | undefined;
  /** Undefined: it is not among those that are loaded. */
  readonly delivery: WebhookDelivery | undefined;
  readonly isLoading: boolean;
  readonly redelivery: Redelivery;
  readonly onClose: () => void;
}

/** Shows a delivery with its attempts. */
export function WebhookDeliveryDialog({ id, delivery, isLoading, redelivery, onClose }: Props) {
  const t = useTexts(webhooks);
  const { close } = useTexts(common);
  return (
    <Modal
      opened={id !== undefined}
      onClose={onClose}
      title={delivery?.eventType ?? t.deliveries}
      closeButtonProps={{ "aria-label": close }}
      size="lg"
    >
      {delivery !== undefined && <Delivery delivery={delivery} redelivery={redelivery} />}
      {delivery === undefined && (isLoading ? <PageLoader /> : <Text size="sm">{t.notLoaded}</Text>)}
    </Modal>
  );
}

function Delivery({ delivery, redelivery }: { readonly delivery: WebhookDelivery; readonly redelivery: Redelivery }) {
  const t = useTexts(webhooks);
  const { deliveryId, seq, state, createTime, nextAttemptTime, attempts } = delivery;
  const facts: readonly (readonly [string, ReactNode])[] = [
    [t.state, <DeliveryState key="state" state={state} />],
    [t.deliveryId, deliveryId],
    [t.eventSeq, seq?.toString()],
    [t.created, createTime && <Time date={createTime} withSeconds />],
    [t.nextAttempt, nextAttemptTime && <Time date={nextAttemptTime} withSeconds />],
  ];
  return (
    <Stack>
      <Facts>
        {facts.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </Facts>
      {attempts.length === 0 ? <Text size="sm">{t.noAttempts}</Text> : <Attempts attempts={attempts} />}
      <ErrorAlert error={redelivery.error} />
      {redelivery.isOffered && (
        <Button
          loading={redelivery.isPending(deliveryId)}
          onClick={() => redelivery.start(deliveryId)}
          style={{ alignSelf: "end" }}
        >
          {t.redeliver}
        </Button>
      )}
    </Stack>
  );
}

function Attempts({ attempts }: { readonly attempts: readonly WebhookAttempt[] }) {
  const t = useTexts(webhooks);
  return (
    <Table horizontalSpacing={6} aria-label={t.attempts}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">{t.time}</Table.Th>
          <Table.Th scope="col">{t.status}</Table.Th>
          <Table.Th scope="col">{t.result}</Table.Th>
          <Table.Th scope="col">{t.duration}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {attempts.map((attempt) => (
          <Table.Tr key={`${attempt.time?.seconds}.${attempt.time?.nanos}`}>
            <Table.Td>{attempt.time && <Time date={attempt.time} withSeconds />}</Table.Td>
            <Table.Td>{attempt.httpStatus === 0 ? t.noResponse : attempt.httpStatus}</Table.Td>
            <Table.Td className="breakable">{attempt.error || t.ok}</Table.Td>
            <Table.Td>{attempt.duration && t.milliseconds(durationMs(attempt.duration))}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
