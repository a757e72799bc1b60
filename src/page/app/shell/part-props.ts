import type { Address } from '../addresses.js'

/** The props of each part. */
export interface PartProps {
  readonly address: Address
}
