/** Checks before the measurements that pictures and page can be written, so that an hour of measuring is not lost. */
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

/** Makes missing folders. Throws the error that prevents writing. */
export function prepareOutputs({ svg, html }: { readonly svg?: string; readonly html?: string }): void {
  if (svg !== undefined) {
    mkdirSync(svg, { recursive: true })
    accessSync(svg, constants.W_OK | constants.X_OK)
  }
  if (html !== undefined) {
    mkdirSync(dirname(html), { recursive: true })
    const isThere = existsSync(html)
    closeSync(openSync(html, 'a'))
    if (!isThere) rmSync(html)
  }
}
