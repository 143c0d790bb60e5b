// Start the page: the address decides which screen is shown.
import { startExports } from "./core/actions.js";
import { startEvents } from "./core/events.js";
import { startKeys } from "./core/keys.js";
import { html, render, useCell, useEffect, useState } from "./core/lib.js";
import { loadLogin, watchConnection } from "./core/login.js";
import { place, startRouter } from "./core/router.js";
import { SCREENS } from "./core/screens.js";
import { startTheme } from "./core/theme.js";
import { Empty, Loading, Screen } from "./parts/page.js";
import { Shell } from "./parts/shell.js";
import SearchScreen from "./screens/search.js";

/** The screens that were shown before, and the first: it is needed at once.
 * @type {Record<string, unknown>} */
const loaded = { search: SearchScreen };

const Missing = () => html`
  <${Screen} title="Not found"><${Empty} title="There is no such page" icon="search">
    <p>Check the address, or <a href="/">search your memories</a>.</p>
  </${Empty}></${Screen}>`;

const Failed = () => html`
  <${Screen} title="Not loaded"><${Empty} title="This screen did not load" icon="warning">
    <p>The server was updated or has stopped. Reload the page; if that does not help, run <code>byheart open</code>.</p>
    <button class="button primary" onClick=${() => location.reload()}>Reload</button>
  </${Empty}></${Screen}>`;

function App() {
  const { screen, parts } = useCell(place);
  const [, again] = useState(0);
  useEffect(() => {
    if (loaded[screen] || !SCREENS[screen]) return;
    SCREENS[screen].load().then(
      (module) => { loaded[screen] = module.default; },
      () => { loaded[screen] = Failed; },
    ).finally(() => again((number) => number + 1));
  }, [screen]);
  const Now = loaded[screen] ?? (SCREENS[screen] ? Loading : Missing);
  return html`<${Shell}><${Now} key=${`${screen}/${parts[0] ?? ""}`} /></${Shell}>`;
}

startTheme();
startRouter();
startKeys();
startExports();
watchConnection();
void loadLogin();
startEvents();
const root = document.getElementById("app");
if (root) {
  root.textContent = ""; // the frame that was painted before the scripts had loaded
  render(html`<${App} />`, root);
}
