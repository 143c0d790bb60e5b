// Dark or light: as the system says, unless the person chose one.
import { cell } from "./lib.js";

/** @typedef {"system"|"light"|"dark"} Theme */
const KEY = "byheart-theme";

/** @returns {Theme} */
function stored() {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // storage is blocked
  }
}

export const theme = cell(stored());

/** Show the chosen theme. */
export function startTheme() {
  const apply = () => {
    const value = theme.get();
    if (value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
  };
  theme.follow((value) => {
    apply();
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // The choice then lasts until the page is closed.
    }
  });
  apply();
}

/** Choose the next of system, light and dark. */
export function nextTheme() {
  const order = /** @type {Theme[]} */ (["system", "light", "dark"]);
  theme.set(order[(order.indexOf(theme.get()) + 1) % order.length]);
}
