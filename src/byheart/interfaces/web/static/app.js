// Start the page: the address decides which screen is shown.
import { startExports } from "./core/actions.js";
import { startEvents } from "./core/events.js";
import { startFocusKeeping } from "./core/focus.js";
import { startKeys } from "./core/keys.js";
import { html, render, useCell } from "./core/lib.js";
import { loadLogin, watchConnection } from "./core/login.js";
import { place, startRouter } from "./core/router.js";
import { SCREENS } from "./core/screens.js";
import { startTheme } from "./core/theme.js";
import { lazy } from "./parts/lazy.js";
import { Empty, Screen } from "./parts/page.js";
import { Shell } from "./parts/shell.js";
import SearchScreen from "./screens/search.js";

/** The first screen is needed at once.
 * @type {Record<string, unknown>} */
const screens = Object.fromEntries(Object.entries(SCREENS).map(([name, { load }]) => [name, name === "search" ? SearchScreen : lazy(load)]));

const Missing = () => html`
  <${Screen} title="Not found"><${Empty} title="There is no such page" icon="search">
    <p>Check the address, or <a href="/">search your memories</a>.</p>
  </${Empty}></${Screen}>`;

function App() {
  const { screen, parts } = useCell(place);
  const Now = screens[screen] ?? Missing;
  return html`<${Shell}><${Now} key=${`${screen}/${parts[0] ?? ""}`} /></${Shell}>`;
}

startTheme();
startRouter();
startKeys();
startFocusKeeping();
startExports();
watchConnection();
void loadLogin();
startEvents();
const root = document.getElementById("app");
if (root) {
  root.textContent = ""; // the frame that was painted before the scripts had loaded
  render(html`<${App} />`, root);
}
