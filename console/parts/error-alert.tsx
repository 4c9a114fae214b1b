import { Code, ConnectError } from "@connectrpc/connect";
import { Alert, Button, List, Text } from "@mantine/core";
import { BadRequestSchema } from "../../gen/google/rpc/error_details_pb.js";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";

interface Props {
  /** Null: nothing is shown. */
  readonly error: Error | null;
  readonly onRetry?: () => void;
}

/** Shows why a call failed: the message of the server, and each field that it rejects. */
export function ErrorAlert({ error, onRetry }: Props) {
  const t = useTexts(common);
  if (error === null) return null;
  const { code, rawMessage } = ConnectError.from(error);
  const isUnreachable = code === Code.Unavailable || code === Code.Unknown;
  const violations = violationsOf(error);
  return (
    <Alert role="alert" color="red" variant="light" title={isUnreachable ? t.unreachable : t.errorTitle}>
      {violations.length > 1 ? (
        <List size="sm">
          {violations.map(({ field, description }) => (
            <List.Item key={field}>{`${field}: ${description}`}</List.Item>
          ))}
        </List>
      ) : (
        <Text size="sm">{rawMessage}</Text>
      )}
      {onRetry !== undefined && (
        <Button mt="sm" size="xs" variant="default" onClick={onRetry}>
          {t.retry}
        </Button>
      )}
    </Alert>
  );
}

/** Returns what the server rejects of a request, by field (google.rpc.BadRequest). */
export function violationsOf(error: Error | null): readonly { readonly field: string; readonly description: string }[] {
  if (error === null) return [];
  return ConnectError.from(error)
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations);
}
