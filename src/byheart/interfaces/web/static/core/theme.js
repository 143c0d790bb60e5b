// Dark or light: as the system says, unless the person chose one.
import { choiceCell } from "./lib.js";

const CHOICES = /** @type {const} */ (["system", "light", "dark"]);

export const theme = choiceCell("byheart-theme", CHOICES);

/** Show the chosen theme. */
export function startTheme() {
  const apply = () => {
    const value = theme.get();
    if (value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
  };
  theme.follow(apply);
  apply();
}

/** Choose the next of system, light and dark. */
export const nextTheme = () => theme.set(CHOICES[(CHOICES.indexOf(theme.get()) + 1) % CHOICES.length]);
