/** The drivers of an endpoint, in order of preference, and for each why it does not connect with one peer. */
import type { Driver } from '../../nic/index.ts'

export class DriverChoice {
  readonly #drivers: readonly Driver[]
  readonly #reasons = new Map<string, string>()

  /** `drivers`: usable here or not. */
  constructor(drivers: readonly Driver[]) {
    this.#drivers = drivers
    for (const driver of drivers) {
      const availability = driver.availability()
      if (!availability.usable) this.#reasons.set(driver.name, availability.reason)
    }
  }

  /** The drivers that are not ruled out. */
  get left(): readonly Driver[] {
    return this.#drivers.filter(({ name }) => !this.#reasons.has(name))
  }

  /** Rules out those that are left and for which `reasonOf` gives a reason. */
  ruleOut(reasonOf: (driver: Driver) => string | undefined): void {
    for (const driver of this.left) {
      const reason = reasonOf(driver)
      if (reason !== undefined) this.#reasons.set(driver.name, reason)
    }
  }

  /** Why none that is preferred to `chosen` connects; undefined if none is. `otherwise`: for those not ruled out. */
  whyNotBetter(chosen: Driver, otherwise: string): string | undefined {
    const better = this.#drivers.slice(0, this.#drivers.indexOf(chosen))
    return better.length === 0 ? undefined : this.#text(better, otherwise)
  }

  /** Each driver with its reason. */
  toString(): string {
    return this.#text(this.#drivers, 'not tried')
  }

  #text(drivers: readonly Driver[], otherwise: string): string {
    return drivers.map(({ name }) => `${name}: ${this.#reasons.get(name) ?? otherwise}`).join('; ')
  }
}
