{
  const system = matchMedia("(prefers-color-scheme: dark)");

  /** Returns the choice that the console stored; null without one, or if the browser denies access to storage. */
  const storedChoice = () => {
    try {
      return localStorage.getItem("mantine-color-scheme-value");
    } catch {
      return null;
    }
  };

  /** Applies the colors of the console: those that the person chose there, or those of the system. */
  const apply = () => {
    const choice = storedChoice();
    const isDark = choice === "dark" || (choice !== "light" && system.matches);
    document.documentElement.classList.toggle("dark-mode", isDark);
  };

  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
}
