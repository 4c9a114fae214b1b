import { Anchor, Button, type ButtonProps, NavLink } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { ComponentPropsWithRef } from "react";

/** Mantine's components as links to pages of the console. */
export const LinkAnchor = createLink(Anchor<"a">);
export const LinkButton = createLink((props: ButtonProps & Omit<ComponentPropsWithRef<"a">, keyof ButtonProps>) => (
  <Button component="a" {...props} />
));
export const LinkNav = createLink(NavLink<"a">);

/** A link to an actor: its limits, its usage and its keys. */
export function ActorLink({ actorId }: { readonly actorId: string }) {
  return (
    <LinkAnchor to="/actors/$actorId" params={{ actorId }}>
      {actorId}
    </LinkAnchor>
  );
}
