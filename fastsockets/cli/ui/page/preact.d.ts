/** What the page uses of htm/preact (standalone), which the server serves as /preact.js. */
export type Node = object | string | number | null | undefined | false | readonly Node[]
export function html(strings: TemplateStringsArray, ...values: unknown[]): object
export function render(node: object, parent: Element): void
export function useState<T>(initial: T): [T, (next: T) => void]
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T
