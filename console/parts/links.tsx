import { Anchor, Button, type ButtonProps, NavLink } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { ComponentPropsWithRef } from "react";

const { root } = Anchor.classes;

/** Looks like Mantine's Anchor, and takes less time to render: long lists have some in each row. */
export const LinkAnchor = createLink(({ className = "", ...props }: ComponentPropsWithRef<"a">) => (
  <a className={`${root} ${className}`} data-underline="hover" {...props} />
));

/** Mantine's components as links to pages of the console. */
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
