import type { Address } from '../addresses.js'

export interface PartProps {
  readonly address: Address
}
