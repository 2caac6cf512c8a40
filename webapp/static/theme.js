// Light or dark: what the person chose, else what the system says. Loaded before anything is painted.
(() => {
  const KEY = "shardboard.theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const current = () => chosen() || (system.matches ? "dark" : "light");
  const apply = () => {
    document.documentElement.setAttribute("data-bs-theme", current());
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      const next = current() === "dark" ? "light" : "dark";
      button.textContent = next === "dark" ? "☾ Dark" : "☀ Light";
      button.setAttribute("aria-label", `Switch to the ${next} theme`);
    }
    document.dispatchEvent(new CustomEvent("themechange"));
  };
  const toggle = () => {
    const next = current() === "dark" ? "light" : "dark";
    const asSystem = (next === "dark") === system.matches;
    try { if (asSystem) localStorage.removeItem(KEY); else localStorage.setItem(KEY, next); } catch { /* private mode: for this page only */ }
    apply();
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
  document.addEventListener("DOMContentLoaded", apply);
  document.addEventListener("click", (event) => { if (event.target.closest("[data-theme-toggle]")) toggle(); });
})();
