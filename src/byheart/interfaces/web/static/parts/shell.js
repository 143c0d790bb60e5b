// The frame around every screen: navigation, the state of login and connection, help.
import { connection } from "../core/api.js";
import { live } from "../core/events.js";
import { keyMaps, singleKeys, useKeys } from "../core/keys.js";
import { classes, html, useCell, useEffect, useState } from "../core/lib.js";
import { login, logout } from "../core/login.js";
import { go, place } from "../core/router.js";
import { SCREENS } from "../core/screens.js";
import { nextTheme, theme } from "../core/theme.js";
import { Dialog, Questions, ask } from "./dialog.js";
import { Icon } from "./icons.js";
import { Toasts } from "./toast.js";

/** What the person must know about the connection. */
function ConnectionBanner() {
  const state = useCell(connection);
  if (state === "ok") return html`<div role="alert"></div>`;
  const [title, text] = state === "gone"
    ? ["The server does not answer.", "Run byheart open in a terminal; this page goes on by itself when the server is back."]
    : ["Your login has expired.", "Run byheart open in a terminal. Text that you typed stays here until you close this page."];
  return html`
    <div class="banner" role="alert">
      <${Icon} name="warning" /><span><strong>${title}</strong> ${text}</span>
    </div>`;
}

const THEME_NAMES = { system: "as the system", light: "light", dark: "dark" };

/** @param {{onHelp: () => void}} props */
function Foot({ onHelp }) {
  const who = useCell(login);
  const chosen = useCell(theme);
  const isLive = useCell(live);
  const leave = async () => {
    const sure = await ask({ title: "Log out?", body: "This browser then needs a new login: run byheart open.", action: "Log out" });
    if (sure !== null) await logout();
  };
  return html`
    <div class="nav-foot">
      ${who && html`
        <p class="whoami">
          <span class=${classes("live-dot", isLive && "live-on")} aria-hidden="true"></span>
          <span class="whoami-space" title="The space that this page shows">${who.space}</span>
          ${who.access === "read" || who.writable === false ? html`<span class="badge">read-only</span>` : null}
          <span class="unseen">${isLive ? "Changes appear by themselves." : "Changes do not appear by themselves now."}</span>
        </p>`}
      <div class="nav-tools">
        <button class="icon-button" aria-label="Colours: ${THEME_NAMES[chosen]}" title="Colours: ${THEME_NAMES[chosen]}" onClick=${nextTheme}><${Icon} name=${chosen} /></button>
        <button class="icon-button" aria-keyshortcuts="?" aria-label="Keys and help" title="Keys and help (?)" onClick=${onHelp}><${Icon} name="help" /></button>
        <a class="icon-button" href="/docs" aria-label="The REST interface" title="The REST interface"><${Icon} name="book" /></a>
        <button class="icon-button" aria-label="Log out" title="Log out" onClick=${() => void leave()}><${Icon} name="logout" /></button>
      </div>
    </div>`;
}

const SPELLED = /** @type {Record<string, string>} */ ({ " ": "Space", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" });

/** @param {{onClose: () => void}} props */
function Help({ onClose }) {
  const maps = useCell(keyMaps);
  const isOn = useCell(singleKeys) === "on";
  const keys = Object.entries(Object.assign({}, ...maps)).filter(([, key]) => !/** @type {any} */ (key).hidden);
  return html`
    <${Dialog} title="Keys" onClose=${onClose}>
      <table class="keys">
        <thead class="unseen"><tr><th scope="col">Key</th><th scope="col">Action</th></tr></thead>
        <tbody>
          ${keys.map(([name, key]) => html`<tr key=${name}><td><kbd>${SPELLED[name] ?? name}</kbd></td><td>${/** @type {any} */ (key).label}</td></tr>`)}
          <tr><td><kbd>Enter</kbd></td><td>Open what has the focus</td></tr>
          <tr><td><kbd>Esc</kbd></td><td>Close a dialog or a menu</td></tr>
        </tbody>
      </table>
      <label class="keys-on"><input type="checkbox" checked=${isOn} onChange=${() => singleKeys.set(isOn ? "off" : "on")} /> Use single keys</label>
      <p class="hint">Each of these has a button as well. Keys do nothing while you type in a field. Screen readers in browse mode use letters themselves.</p>
    </${Dialog}>`;
}

/** The whole page. @param {{children?: unknown}} props */
export function Shell({ children }) {
  const { screen } = useCell(place);
  const [helps, setHelps] = useState(false);
  const [open, setOpen] = useState(false);
  useKeys({
    "/": {
      label: "Search",
      run: () => {
        const box = document.querySelector("input[type=search]");
        if (box instanceof HTMLInputElement) {
          box.focus();
          box.select();
        } else go("/?focus=1");
      },
    },
    "?": { label: "Show the keys", run: () => setHelps(true) },
  });
  useEffect(() => setOpen(false), [useCell(place).path]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the content</a>
    <div class="shell">
      <header class=${classes("side", open && "side-open")}>
        <div class="side-head">
          <a class="brand" href="/"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M5 3.500h11.500a2.500 2.500 0 0 1 2.500 2.500v14.500H7.500A2.500 2.500 0 0 1 5 18z"/><path d="M12 14.200 9.300 11.600a1.700 1.700 0 0 1 2.400-2.400l.3.300.3-.3a1.700 1.700 0 0 1 2.400 2.400z"/></svg>Byheart</a>
          <button class="icon-button side-toggle" aria-label="Menu" aria-expanded=${open} aria-controls="nav" onClick=${() => setOpen(!open)}><${Icon} name=${open ? "close" : "menu"} /></button>
        </div>
        <div class="side-rest" id="nav">
          <nav aria-label="Screens">
            ${Object.entries(SCREENS).map(([name, info]) => info.label && html`
              <a key=${name} href=${info.path} aria-current=${screen === name ? "page" : undefined} aria-keyshortcuts=${name === "search" ? "/" : undefined}><${Icon} name=${name} />${info.label}</a>`)}
          </nav>
          <${Foot} onHelp=${() => setHelps(true)} />
        </div>
      </header>
      <main id="main" tabindex="-1">
        <${ConnectionBanner} />
        ${children}
      </main>
    </div>
    <${Toasts} />
    <${Questions} />
    ${helps && html`<${Help} onClose=${() => setHelps(false)} />`}`;
}
