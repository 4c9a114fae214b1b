import type { Family } from "../case.ts";
import { chains } from "./chains.ts";
import { costs } from "./costs.ts";
import { credentials } from "./credentials.ts";
import { csv } from "./csv.ts";
import { floods } from "./floods.ts";
import { framing } from "./framing.ts";
import { hops } from "./hops.ts";
import { http1 } from "./http1.ts";
import { http2 } from "./http2.ts";
import { lists } from "./lists.ts";
import { streams } from "./streams.ts";

/** All families of inputs. */
export const FAMILIES: readonly Family[] = [
  http1,
  http2,
  framing,
  credentials,
  lists,
  costs,
  hops,
  csv,
  chains,
  floods,
  streams,
];
