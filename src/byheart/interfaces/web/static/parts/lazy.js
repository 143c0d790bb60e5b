// Components whose module is loaded when they are first shown.
import { html, useEffect, useState } from "../core/lib.js";
import { Empty, Loading, Screen } from "./page.js";

const Failed = () => html`
  <${Screen} title="Not loaded"><${Empty} title="This part of the page did not load" icon="warning">
    <p>The server was updated or has stopped. Reload the page; if that does not help, run <code>byheart open</code>.</p>
    <button class="button primary" onClick=${() => location.reload()}>Reload</button>
  </${Empty}></${Screen}>`;

/** Make a component of a module's default export. @param {() => Promise<{default: unknown}>} load */
export function lazy(load) {
  let Found = /** @type {unknown} */ (null);
  return function Later(/** @type {Record<string, unknown>} */ props) {
    const [, again] = useState(0);
    useEffect(() => {
      if (Found) return;
      load().then((module) => { Found = module.default; }, () => { Found = Failed; }).finally(() => again((number) => number + 1));
    }, []);
    return Found ? html`<${Found} ...${props} />` : html`<${Loading} />`;
  };
}
