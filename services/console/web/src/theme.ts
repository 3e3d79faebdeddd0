// The reader's choice between dark and light; without one the system decides.
import { themeChanged } from "./parts/chart";

export type Theme = "system" | "light" | "dark";

const place = "lodge-theme";

// theme returns the stored choice.
export function theme(): Theme {
  const stored = localStorage.getItem(place);
  return stored === "light" || stored === "dark" ? stored : "system";
}

// chooseTheme stores and applies a choice.
export function chooseTheme(choice: Theme) {
  if (choice === "system") localStorage.removeItem(place);
  else localStorage.setItem(place, choice);
  applyTheme();
}

// applyTheme makes the page follow the stored choice.
export function applyTheme() {
  const choice = theme();
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  themeChanged();
}
