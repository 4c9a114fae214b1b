import { Code, ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { Box } from "@mantine/core";
import type { ComponentProps, ReactNode } from "react";
import { CallersService } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { SignInPage } from "../pages/sign-in.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { CallerContext } from "./permissions.ts";

/** Shows the pages to a caller that the server accepts, and the page for signing in to others. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const { data, error, refetch } = useQuery(CallersService.method.whoAmI, {}, { staleTime: Number.POSITIVE_INFINITY });
  if (error !== null) {
    const { code, rawMessage, metadata } = ConnectError.from(error);
    if (code === Code.PermissionDenied) return <SignInPage rejected={{ message: rawMessage, isSignedIn: true }} />;
    if (code !== Code.Unauthenticated) return <GateFailed error={error} onRetry={() => void refetch()} />;
    const hadSession = metadata.get("x-keyhold-session") === "sent";
    return <SignInPage rejected={hadSession ? { message: rawMessage, isSignedIn: false } : null} />;
  }
  return data === undefined ? <PageLoader /> : <CallerContext value={data}>{children}</CallerContext>;
}

function GateFailed(alert: ComponentProps<typeof ErrorAlert>) {
  return (
    <Box component="main" p="md">
      <Page title={useTexts(common).error}>
        <ErrorAlert {...alert} />
      </Page>
    </Box>
  );
}
