import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { type ReactNode, use, useEffect, useState } from "react";
import { CallersService, type WhoAmIResponse } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { CallerContext } from "../session/permissions.ts";
import { refreshSession } from "../session/query-client.ts";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { EndedPage } from "./ended-page.tsx";
import type { LinkResult } from "./link.ts";
import { MessagePage } from "./message-page.tsx";

interface Props {
  /** The attempt that began when the page was loaded. */
  readonly first: Promise<LinkResult>;
  readonly children: ReactNode;
}

/** Shows the page once the link is open. Suspends until then. */
export function LinkGate({ first, children }: Props) {
  const [attempt, setAttempt] = useState(first);
  const result = use(attempt);
  if (result.state === "rejected") return <EndedPage reason="rejected" />;
  if (result.state !== "failed") return <OwnerGate wasOpened={result.state === "opened"}>{children}</OwnerGate>;
  return <Failed error={result.error} onRetry={() => setAttempt(result.retry())} />;
}

/** Shows the page to an owner with a session. */
function OwnerGate({ wasOpened, children }: { readonly wasOpened: boolean; readonly children: ReactNode }) {
  const { data, error, refetch } = useQuery(CallersService.method.whoAmI, {}, { staleTime: Number.POSITIVE_INFINITY });
  useEndOf(data);
  if (error !== null) {
    const { code, metadata } = ConnectError.from(error);
    if (code !== Code.Unauthenticated) return <Failed error={error} onRetry={() => void refetch()} />;
    const hadSession = data !== undefined || metadata.get("x-keyhold-session") === "sent";
    const reason = hadSession ? "ended" : wasOpened ? "notStored" : "none";
    return <EndedPage reason={reason} returnUrl={data?.keyPageSession?.returnUrl} />;
  }
  return data === undefined ? <PageLoader /> : <CallerContext value={data}>{children}</CallerContext>;
}

/** Asks again who the caller is once the session has ended, even if nothing is done on the page. */
function useEndOf(caller: WhoAmIResponse | undefined): void {
  const expireTime = caller?.expireTime;
  useEffect(() => {
    if (expireTime === undefined) return;
    const timer = setTimeout(() => void refreshSession(), Math.max(timestampMs(expireTime) - Date.now(), 0) + 1_000);
    return () => clearTimeout(timer);
  }, [expireTime]);
}

function Failed({ error, onRetry }: { readonly error: Error; readonly onRetry: () => void }) {
  return (
    <MessagePage title={useTexts(ownerPage).title}>
      <ErrorAlert error={error} onRetry={onRetry} />
    </MessagePage>
  );
}
