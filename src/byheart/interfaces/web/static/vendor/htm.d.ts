import type { VNode } from "./preact.js";
declare const htm: {
  bind(make: unknown): (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
};
export default htm;
