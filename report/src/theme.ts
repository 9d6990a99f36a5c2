// Light or dark: as the system has it, until somebody says otherwise.
export function startTheme(): { label: () => string; turn: (event: Event) => void } {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen: string | null = null;
  try {
    chosen = localStorage.getItem("netmend-theme");
  } catch {
    // pages from disk may have no storage
  }
  const now = () => (chosen === "dark" || chosen === "light" ? chosen : system.matches ? "dark" : "light");
  const apply = () => (document.documentElement.dataset.theme = now());
  const label = () => (now() === "dark" ? "light" : "dark");
  system.addEventListener("change", apply);
  apply();
  return {
    label,
    turn(event) {
      chosen = label();
      try {
        localStorage.setItem("netmend-theme", chosen);
      } catch {
        // then it lasts as long as the page
      }
      apply();
      (event.currentTarget as HTMLElement).textContent = label();
    },
  };
}
