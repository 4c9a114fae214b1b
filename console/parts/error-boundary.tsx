import { Component, type ReactNode } from "react";

interface Props {
  /** What is shown instead once a component has thrown. */
  readonly fallback: ReactNode;
  readonly children: ReactNode;
}

/** Catches errors of components, such as a file that could not be loaded. */
export class ErrorBoundary extends Component<Props, { readonly hasFailed: boolean }> {
  override readonly state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}
