import type { FormField } from './form-fields.js'

export interface FieldProps {
  readonly id: string
  readonly field: FormField
  readonly entry: string
  readonly error: string | undefined
  readonly onEntry: (entry: string) => void
}
