import type { Address } from '../addresses.js'

/** What each part gets. */
export interface PartProps {
  readonly address: Address
}
