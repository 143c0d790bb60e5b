// The part of Preact's types that the page uses. The package's own types are much larger.
export interface VNode { type: unknown; props: Record<string, unknown>; key: unknown }
export type Node = VNode | string | number | boolean | null | undefined | Node[];
export const Fragment: unknown;
export function h(type: unknown, props: unknown, ...children: Node[]): VNode;
export function render(node: Node, parent: Element): void;
export function createPortal(node: Node, parent: Element): VNode;
