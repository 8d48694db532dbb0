/** Draws the page anew for each snapshot, at most once for each frame of the screen. */
import { html, render } from './preact.js'

export interface Live {
  readonly events: EventSource
  /** Draws in the next frame of the screen: to be called after a change of what `draw` uses. */
  readonly redraw: () => void
}

/** `draw` returns undefined as long as there is nothing to show. `onLost`: the server does not answer. */
export function live(draw: () => object | undefined, onLost: () => void): Live {
  const page = document.getElementById('page') as HTMLElement
  let isDrawing = false
  const redraw = (): void => {
    if (isDrawing) return
    isDrawing = true
    requestAnimationFrame(() => {
      isDrawing = false
      const drawn = draw()
      if (drawn === undefined) return
      document.getElementById('waiting')?.remove()
      render(drawn, page)
    })
  }
  const events = new EventSource('/events')
  events.addEventListener('error', () => {
    onLost()
    redraw()
  })
  return { events, redraw }
}

/** The time of the snapshot, or that `server` does not answer. */
export function State({ atMs, isLost, server }: { atMs: number; isLost: boolean; server: string }): object {
  const time = new Date(atMs).toLocaleTimeString()
  const state = isLost ? `Nothing new since ${time}: ${server} does not answer.` : `as of ${time}`
  return html`<span id="state" role="status" aria-live=${isLost ? 'assertive' : 'off'} class=${isLost ? 'lost' : 'quiet'}>${state}</span>`
}
