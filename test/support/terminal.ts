const MODULE = `import tty from "node:tty";
for (const stream of [process.stdout, process.stderr]) {
  const { hasColors, getColorDepth } = tty.WriteStream.prototype;
  Object.assign(stream, { isTTY: true, hasColors, getColorDepth });
}`;

/** Node has no pseudo-terminals, so a command is made to take its output, pipes, for a terminal with colours. */
export const TERMINAL = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(MODULE)}`,
  TERM: "xterm-256color",
};
