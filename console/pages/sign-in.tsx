import { Alert, Button, Center, Divider, Paper, Stack, Text, Title } from "@mantine/core";
import { Brand } from "../parts/brand.tsx";
import { useTitle } from "../parts/page.tsx";
import { TokenForm } from "../parts/token-form.tsx";
import { acceptsAdminTokens, oidcIssuer } from "../session/page-settings.ts";
import { oidcSignInPath, signInError, signOut } from "../session/sign-in.ts";
import { useTexts } from "../texts/language.tsx";
import { session } from "../texts/session.ts";

/** Why the server does not accept the session. */
export interface RejectedSession {
  readonly message: string;
  /** Whether the person is known, and has no right to use the console. */
  readonly isSignedIn: boolean;
}

/** `rejected`: the session that the server does not accept; null: there is none. */
export function SignInPage({ rejected }: { readonly rejected: RejectedSession | null }) {
  const t = useTexts(session);
  const offersOidc = oidcIssuer !== "";
  // That of the last page would show its name to the next person.
  useTitle(t.signIn);
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" w="100%" maw="26rem">
        <Stack>
          <Brand />
          <Title order={1} size="h3">
            {t.signIn}
          </Title>
          <WhyNot rejected={rejected} />
          {offersOidc && (
            <Button
              component="a"
              href={oidcSignInPath()}
              variant={acceptsAdminTokens ? "default" : "filled"}
              h="auto"
              py="xs"
            >
              <span style={{ whiteSpace: "normal", overflowWrap: "anywhere", lineHeight: 1.4 }}>
                {t.signInWith(oidcIssuer)}
              </span>
            </Button>
          )}
          {offersOidc && acceptsAdminTokens && <Divider label={t.or} />}
          {acceptsAdminTokens && <TokenForm />}
          {!offersOidc && !acceptsAdminTokens && <Text>{t.noWay}</Text>}
        </Stack>
      </Paper>
    </Center>
  );
}

function WhyNot({ rejected }: { readonly rejected: RejectedSession | null }) {
  const t = useTexts(session);
  if (rejected !== null)
    return (
      <Alert role="status" title={rejected.isSignedIn ? t.notPermitted : t.ended}>
        <Stack align="start" gap="xs">
          {rejected.message}
          {rejected.isSignedIn && (
            <Button variant="default" size="xs" onClick={() => void signOut()}>
              {t.signOut}
            </Button>
          )}
        </Stack>
      </Alert>
    );
  const error = signInError();
  return (
    error !== null && (
      <Alert role="alert" color="red" title={t.failed}>
        {t.failures[error]}
      </Alert>
    )
  );
}
