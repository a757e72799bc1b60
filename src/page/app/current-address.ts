/** The current address of the page. */
import { signal, type ReadonlySignal } from '@preact/signals'
import { readAddress, type Address } from './addresses.js'

const address = signal(readAddress(location.hash))
window.addEventListener('hashchange', () => {
  address.value = readAddress(location.hash)
})

export const currentAddress: ReadonlySignal<Address> = address

/** Goes to an address, as a link would. */
export function goTo(to: string): void {
  location.hash = to
}

/** Adds the address to the history at once, so that going back returns to the present one. */
export function pushAddress(to: string): void {
  history.pushState(null, '', to)
  address.value = readAddress(to)
}

/** Replaces the address without a history entry, for example while a person types a filter. Going back then leaves the part. */
export function replaceAddress(to: string): void {
  history.replaceState(null, '', to)
  address.value = readAddress(to)
}
