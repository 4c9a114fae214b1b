import { Box } from "@mantine/core";
import { actors } from "../../texts/actors.ts";
import { useTexts } from "../../texts/language.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { LinkAnchor } from "../links.tsx";
import { PageLoader } from "../page-loader.tsx";
import { stepsOf } from "../usage/usage-period.ts";
import { UsagePlot } from "../usage/usage-plot.tsx";
import { useUsage } from "../usage/use-usage.ts";

/** Shows how often the keys of an actor were verified in the last 30 days. */
export function ActorUsage({ actorId }: { readonly actorId: string }) {
  const t = useTexts(actors);
  const { step, startTime } = stepsOf("30d");
  const { points, error, refetch } = useUsage({ actorId, step, startTime, groupBy: ["outcome"] });
  if (error !== null) return <ErrorAlert error={error} onRetry={() => void refetch()} />;
  if (points === undefined) return <PageLoader />;
  return (
    <>
      <UsagePlot period="30d" points={points} />
      <Box>
        <LinkAnchor to="/usage" search={{ actor: [actorId], period: ["30d"] }}>
          {t.more}
        </LinkAnchor>
      </Box>
    </>
  );
}
