import { AsyncResource } from 'node:async_hooks'

/**
 * The asynchronous context of now, for callbacks that come later. Hooks of the program see it, since on Node 22 they are what
 * carries AsyncLocalStorage; detectors of open handles do not list it.
 */
export class KeptContext extends AsyncResource {
  constructor() {
    super('FASTSOCKETS')
  }

  hasRef(): boolean {
    return false
  }
}
