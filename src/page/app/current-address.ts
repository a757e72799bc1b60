/** The current address of the page. */
import { signal, type ReadonlySignal } from '@preact/signals'
import { readAddress, type Address } from './addresses.js'

const address = signal(readAddress(location.hash))
window.addEventListener('hashchange', () => {
  address.value = readAddress(location.hash)
})

export const currentAddress: ReadonlySignal<Address> = address

/** Goes to an address, as a click on a link does. */
export function goTo(to: string): void {
  location.hash = to
}

/** Goes to an address at once and adds it to the browser's history, so that the Back button returns to the present address. */
export function pushAddress(to: string): void {
  history.pushState(null, '', to)
  address.value = readAddress(to)
}

/** Replaces the present address without a new history entry, for example while a person types a filter. The Back button then leaves the part. */
export function replaceAddress(to: string): void {
  history.replaceState(null, '', to)
  address.value = readAddress(to)
}
